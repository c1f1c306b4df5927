// A trained head: what it computes, for which model, and how it came about. A plain value.
#ifndef TRINE_RUNTIME_HEAD_HEAD_H_
#define TRINE_RUNTIME_HEAD_HEAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/head/linear_head.h"
#include "runtime/head/model_identity.h"

namespace trine {

// What is put before the model, and read from its last row.
enum class HeadKind {
  kLabel,   // one text, which has one of two labels: log-odds of the second
  kBranch,  // a text for each branch: the highest log-odds are the best branch's
};
// How a text becomes tokens.
enum class PromptForm {
  kPlain,  // as it is
  kChat,   // a message, in the template of the model's file, with the beginning of the answer
};

const char* HeadKindName(HeadKind kind);      // label, branch
const char* PromptFormName(PromptForm form);  // plain, chat

struct TrainingSummary {
  int64_t examples = 0, correct = 0;           // that it was trained with
  int64_t held_out = 0, held_out_correct = 0;  // that it was not
  double l2 = 0, hold_out = 0;
  uint64_t seed = 0;
  int64_t iterations = 0;
  double loss = 0;
};

struct Head {
  HeadKind kind = HeadKind::kLabel;
  PromptForm form = PromptForm::kPlain;
  int64_t numerics = 0;  // version of the contract the rows were computed under
  ModelIdentity model;
  std::vector<std::string> labels;  // kLabel: two; kBranch: none
  TrainingSummary training;
  LinearHead linear;
};

// INVALID_ARGUMENT, naming the member, for a head that no training could have made.
absl::Status CheckHead(const Head& head);

// FAILED_PRECONDITION, saying what differs, for a head of another model or another arithmetic.
absl::Status CheckFits(const Head& head, const ModelIdentity& model);

}  // namespace trine

#endif  // TRINE_RUNTIME_HEAD_HEAD_H_
