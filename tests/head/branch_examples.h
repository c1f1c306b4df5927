// Questions about branches that a head of the shipped model learns: which of two branches brings
// the subject nearer to a goal. Training and held-out data use different words for goals, other
// places and subjects. Each question comes with its twin, with the branches swapped, in one group:
// as many answers are A as B.
#pragma once

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
BranchWords HeldOutWords();  // its own goals and subjects; the same verbs
// The held-out words, with verbs of their own too.
BranchWords HeldOutVerbs();

// Makes `pairs` questions for each goal, and their twins: {"prompt": ..., "label": "A" or "B"}.
HeadData LabelExamples(const BranchWords& words, BranchFamily family, int pairs);
// Makes the same questions with a text for each branch.
HeadData BranchExamples(const BranchWords& words, BranchFamily family, int pairs);

// Returns the examples as lines of JSON.
std::string ToJsonLines(const HeadData& data);

}  // namespace trine
