// Writes examples for `trine head`:
//
//   make-branch-examples train|held-out|held-out-verbs [away|elsewhere|both] [label|branch]
#include <cstdio>
#include <string>

#include "tests/head/branch_examples.h"

int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "";
  const std::string family_name = argc > 2 ? argv[2] : "both";
  const std::string kind = argc > 3 ? argv[3] : "label";
  if (part != "train" && part != "held-out" && part != "held-out-verbs") {
    std::fprintf(stderr,
                 "usage: make-branch-examples train|held-out|held-out-verbs [away|elsewhere|both] "
                 "[label|branch]\n");
    return 2;
  }
  const trine::BranchWords words = part == "train"      ? trine::TrainingWords()
                                   : part == "held-out" ? trine::HeldOutWords()
                                                        : trine::HeldOutVerbs();
  const auto family = family_name == "away"        ? trine::BranchFamily::kAway
                      : family_name == "elsewhere" ? trine::BranchFamily::kElsewhere
                                                   : trine::BranchFamily::kBoth;
  constexpr int kPairs = 14;
  const trine::HeadData data = kind == "branch" ? trine::BranchExamples(words, family, kPairs)
                                                : trine::LabelExamples(words, family, kPairs);
  std::fputs(trine::ToJsonLines(data).c_str(), stdout);
  return 0;
}
