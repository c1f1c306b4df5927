// Trains a head from examples whose rows have been read, and measures how well a head does on
// examples. The result depends on the examples and the options only, bit for bit. Plain values and
// pure functions; any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/head/head.h"
#include "runtime/head/head_data.h"

namespace trine {

struct Interval {
  double low = 0, high = 1;
};

// Returns Wilson's interval at 95 % for the probability of a success, after `successes` of `n`
// trials. Returns 0 to 1 if n is 0.
Interval WilsonInterval(int64_t successes, int64_t n);

// Says how well a head does on examples.
struct HeadReport {
  int64_t examples = 0, correct = 0;
  Interval accuracy;     // the interval around correct / examples
  int64_t majority = 0;  // how many would be correct if the most frequent answer were always given
  std::vector<std::string> answers;             // labels, or the numbers of branches from 1
  std::vector<std::vector<int64_t>> confusion;  // [right answer][chosen answer]
  // Some groups are two examples that differ in their order only: with both labels, or with the
  // same branches swapped. `swaps` is the number of these groups. `swaps_followed` is the number of
  // these in which the head chose the same branch in either order.
  int64_t swaps = 0, swaps_followed = 0;
  double log_loss = 0;  // the mean of -log(probability of the right answer)

  double Accuracy() const;
  double MajorityShare() const;
};

// Returns the probability of each answer: of each label, or of each branch. `rows` has the row of
// the text, or of each branch.
std::vector<double> AnswerProbabilities(const Head& head, std::span<const std::vector<float>> rows);
// Returns the index of the most probable answer. Among equal probabilities the first one counts.
size_t BestAnswer(std::span<const double> probabilities);

// Returns INVALID_ARGUMENT if the data is of another kind than the head, or if a label, whose line
// it names, is not one of the head's.
absl::Status CheckData(const Head& head, const HeadData& data);

// Evaluates the examples with these indices, at least one. CheckData must have accepted the data.
HeadReport EvaluateHead(const Head& head, const HeadData& data, std::span<const size_t> indices);

struct TrainOptions {
  PromptForm form = PromptForm::kPlain;
  double l2 = 0.01;
  double hold_out = 0.2;  // the fraction of examples that are not used for training
  uint64_t seed = 0;      // selects the examples that are held out
  // The label whose log-odds the head computes; "": the label that is sorted last.
  std::string good;
  bool fast = false;  // the rows were computed where fast numerics were allowed
};

struct TrainedHead {
  Head head;
  HeadReport trained;
  std::optional<HeadReport> held_out;  // nullopt: nothing was held out
};

// Trains a head by logistic regression. For kLabel it is fitted to standardised rows. For kBranch
// it is fitted to differences of rows, the best branch's minus each other branch's, and without a
// bias, so that no order of branches is preferred. Returns INVALID_ARGUMENT if the training
// examples lack one of the labels, or if `good` is not a label.
absl::StatusOr<TrainedHead> TrainHead(const HeadData& data, const ModelIdentity& model,
                                      const TrainOptions& options);

}  // namespace trine
