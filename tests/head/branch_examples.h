// Questions about branches that the shipped model was taught: which of two brings one nearer to a
// goal. Goals, what lies elsewhere and who goes are other words in what is trained with than in
// what is held out. Each question comes with its twin, the branches the other way round, in one
// group: as many answers are A as B.
#ifndef TRINE_TESTS_HEAD_BRANCH_EXAMPLES_H_
#define TRINE_TESTS_HEAD_BRANCH_EXAMPLES_H_

#include <string>
#include <vector>

#include "runtime/head/head_data.h"

namespace trine {

// What makes the worse branch worse.
enum class BranchFamily {
  kAway,       // it leads away from the goal
  kElsewhere,  // it leads to something else
  kBoth,
};

struct BranchWords {
  struct Goal {
    const char* name;
    const char* elsewhere;
  };
  std::vector<Goal> goals;
  std::vector<const char*> subjects;
  std::vector<const char*> toward;
  std::vector<const char*> away;
};

BranchWords TrainingWords();
BranchWords HeldOutWords();  // goals and subjects of its own; the same verbs
// The held-out ones with verbs of their own too.
BranchWords HeldOutVerbs();

// `pairs` questions for each goal, and their twins: {"prompt": ..., "label": "A" or "B"}.
HeadData LabelExamples(const BranchWords& words, BranchFamily family, int pairs);
// The same questions with a text for each branch.
HeadData BranchExamples(const BranchWords& words, BranchFamily family, int pairs);

// As lines of JSON.
std::string ToJsonLines(const HeadData& data);

}  // namespace trine

#endif  // TRINE_TESTS_HEAD_BRANCH_EXAMPLES_H_
