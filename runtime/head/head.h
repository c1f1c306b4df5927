// A trained head: what it computes, for which model, and how it was trained. Plain values,
// immutable once made; any thread may call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/model_config.h"

namespace trine {

// The function that a head computes, which is linear in a row of the hidden state.
struct LinearHead {
  // One value for each value of the row. `scale` is above 0.
  std::vector<double> mean, scale, weights;
  double bias = 0;

  // Returns bias + the sum of weights[i] * ((row[i] - mean[i]) / scale[i]) by increasing i, in
  // binary64. The row must have as many values as the head.
  double LogOdds(std::span<const float> row) const;
};

// Identifies the model that a head belongs to.
struct ModelIdentity {
  std::string architecture;
  int64_t n_embd = 0;
  int64_t n_vocab = 0;
  uint64_t hash = 0;

  bool operator==(const ModelIdentity&) const = default;
};

ModelIdentity IdentityOf(const gguf::File& file, const ModelConfig& config);

// The choice that a head makes.
enum class HeadKind {
  kLabel,   // one of two labels for a text; the log-odds are those of the second label
  kBranch,  // one of several texts, the branches; the best text has the highest log-odds
};
// The way in which a text becomes tokens.
enum class PromptForm {
  kPlain,  // the text as it is
  kChat,   // the text as a message in the model's chat template, with the beginning of an answer
};

const char* HeadKindName(HeadKind kind);      // label, branch
const char* PromptFormName(PromptForm form);  // plain, chat

struct TrainingSummary {
  int64_t examples = 0, correct = 0;           // examples used for training
  int64_t held_out = 0, held_out_correct = 0;  // examples held out of training
  double l2 = 0, hold_out = 0;
  uint64_t seed = 0;
  int64_t iterations = 0;
  double loss = 0;
  bool fast = false;  // the rows were computed where fast numerics were allowed
};

struct Head {
  HeadKind kind = HeadKind::kLabel;
  PromptForm form = PromptForm::kPlain;
  int64_t numerics = 0;  // the version of the contract under which the rows were computed
  ModelIdentity model;
  std::vector<std::string> labels;  // two for kLabel; none for kBranch
  TrainingSummary training;
  LinearHead linear;
};

// Returns INVALID_ARGUMENT, naming a member, if no training could have made this head.
absl::Status CheckHead(const Head& head);

// Returns FAILED_PRECONDITION, saying what differs, for a head of another model or arithmetic.
absl::Status CheckFits(const Head& head, const ModelIdentity& model);

// Rates a text by its last row: higher log-odds are better. For a kLabel head, the second label is
// the good one. Log-odds of a kBranch head only say which of several texts is better.
class ValueHead {
 public:
  // Returns FAILED_PRECONDITION for a head of another model.
  static absl::StatusOr<ValueHead> Create(const ModelIdentity& model, Head head);

  const Head& head() const { return head_; }

  // The row must have as many values as the model's hidden state.
  double LogOdds(std::span<const float> row) const { return head_.linear.LogOdds(row); }

 private:
  explicit ValueHead(Head head) : head_(std::move(head)) {}

  Head head_;
};

}  // namespace trine
