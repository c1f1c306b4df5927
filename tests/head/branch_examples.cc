#include "tests/head/branch_examples.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace trine {
namespace {

struct Question {
  std::string goal;
  std::string better, worse;  // what the two branches say
  std::string group;
};

// Verbs and subjects change at different paces, so that every pair occurs.
std::vector<Question> Questions(const BranchWords& words, BranchFamily family, int pairs) {
  std::vector<Question> questions;
  size_t n = 0;
  const auto take = [&](const std::vector<const char*>& list, size_t i) {
    return list[i % list.size()];
  };
  for (const BranchWords::Goal& goal : words.goals) {
    for (int k = 0; k < pairs; ++k, ++n) {
      const bool away =
          family == BranchFamily::kAway || (family == BranchFamily::kBoth && k % 2 == 0);
      const std::string subject = absl::StrCat("the ", take(words.subjects, n));
      const char* toward = take(words.toward, n + n / words.toward.size());
      const std::string worse =
          away ? absl::StrCat(take(words.away, n / 2 + n / 7), " ", goal.name)
               : absl::StrCat(take(words.toward, n / 3 + n / 5), " ", goal.elsewhere);
      questions.push_back({goal.name, absl::StrCat(subject, " ", toward, " ", goal.name),
                           absl::StrCat(subject, " ", worse), absl::StrCat(goal.name, " ", k)});
    }
  }
  return questions;
}

std::string Prompt(const std::string& goal, const std::string& a, const std::string& b) {
  return absl::StrCat("Goal: reach ", goal, ". Branch A: ", a, ". Branch B: ", b,
                      ". Which branch is better?");
}

std::string BranchText(const std::string& goal, const std::string& branch) {
  return absl::StrCat("Goal: reach ", goal, ". Branch: ", branch, ". Is it a good branch?");
}

}  // namespace

BranchWords TrainingWords() {
  return {.goals = {{"the castle", "the swamp"},
                    {"the sea", "the mountains"},
                    {"the river", "the desert"},
                    {"home", "the forest"},
                    {"warmth", "the cold"},
                    {"friends", "enemies"},
                    {"the light", "the dark"},
                    {"the fire", "the ice"},
                    {"the top", "the bottom"},
                    {"the well", "the dust"},
                    {"the door", "the wall"},
                    {"the answer", "a mistake"},
                    {"the bridge", "the cliff"},
                    {"the treasure", "the trap"},
                    {"safety", "danger"},
                    {"the harbour", "the storm"}},
          .subjects = {"traveller", "girl", "soldier", "merchant", "old man"},
          .toward = {"walks toward", "moves toward", "heads for", "gets closer to",
                     "goes nearer to", "takes the path to", "turns to"},
          .away = {"moves away from", "gets farther from", "turns its back on"}};
}

BranchWords HeldOutWords() {
  BranchWords words = TrainingWords();
  words.goals = {
      {"the north", "the south"},   {"the village", "the marsh"}, {"the garden", "the ruins"},
      {"the tower", "the pit"},     {"the king", "the wolf"},     {"the mill", "the bog"},
      {"the church", "the tavern"}, {"the market", "the prison"}, {"the lake", "the hills"},
      {"the ship", "the rocks"},    {"the city", "the wood"},     {"the palace", "the stable"}};
  words.subjects = {"knight", "shepherd", "prince", "woman"};
  return words;
}

BranchWords HeldOutVerbs() {
  BranchWords words = HeldOutWords();
  words.toward = {"runs to", "hurries toward", "rides to", "comes near"};
  words.away = {"runs away from", "flees from", "leaves"};
  return words;
}

HeadData LabelExamples(const BranchWords& words, BranchFamily family, int pairs) {
  HeadData data;
  for (const Question& q : Questions(words, family, pairs)) {
    for (const bool swapped : {false, true}) {
      Example example;
      example.line = static_cast<int64_t>(data.examples.size()) + 1;
      example.group = q.group;
      example.texts = {swapped ? Prompt(q.goal, q.worse, q.better)
                               : Prompt(q.goal, q.better, q.worse)};
      example.label = std::string(1, swapped ? 'B' : 'A');
      data.examples.push_back(std::move(example));
    }
  }
  return data;
}

HeadData BranchExamples(const BranchWords& words, BranchFamily family, int pairs) {
  HeadData data;
  data.kind = HeadKind::kBranch;
  for (const Question& q : Questions(words, family, pairs)) {
    for (const bool swapped : {false, true}) {
      Example example;
      example.line = static_cast<int64_t>(data.examples.size()) + 1;
      example.group = q.group;
      example.texts = {BranchText(q.goal, q.better), BranchText(q.goal, q.worse)};
      if (swapped) std::swap(example.texts[0], example.texts[1]);
      example.best = swapped ? 1 : 0;
      data.examples.push_back(std::move(example));
    }
  }
  return data;
}

std::string ToJsonLines(const HeadData& data) {
  std::string text;
  for (const Example& example : data.examples) {
    nlohmann::ordered_json json;
    if (data.kind == HeadKind::kLabel) {
      json = {{"prompt", example.texts[0]}, {"label", example.label}};
    } else {
      json = {{"branches", example.texts}, {"best", example.best}};
    }
    json["group"] = example.group;
    absl::StrAppend(&text, json.dump(), "\n");
  }
  return text;
}

}  // namespace trine
