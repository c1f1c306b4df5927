// Trains a head from examples, and measures how well a head does on examples. The examples must
// have their rows, which are rows of the model's hidden state: ReadRows in
// runtime/engine/branch_choice_head.h sets them.
//
// Results have the same bits on every machine. Plain values and pure functions; any thread may
// call.
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

// A range of probabilities.
struct Interval {
  double low = 0, high = 1;
};

// Returns Wilson's interval for the probability of a success, if `successes` of `n` trials
// succeeded: in 95 % of cases it contains the true probability. Returns 0 to 1 if n is 0.
Interval WilsonInterval(int64_t successes, int64_t n);

// Says how well a head does on examples. An answer is a label, or for kBranch a branch.
struct HeadReport {
  int64_t examples = 0, correct = 0;  // all evaluated ones, and those answered right
  Interval accuracy;                  // WilsonInterval(correct, examples)
  // How many examples have the most frequent right answer. A head that always gave this answer
  // would be right about these.
  int64_t majority = 0;
  // The names of the answers: the head's two labels, or "1", "2", ... for the branches, as many as
  // the example with the most branches has.
  std::vector<std::string> answers;
  std::vector<std::vector<int64_t>> confusion;  // [right answer][chosen answer]: how many examples
  // Pairs of examples with a swapped order. They show whether a head follows the content or the
  // order. A pair is a group with exactly two evaluated examples: for kLabel with different labels,
  // for kBranch with the same two branches in opposite order. `swaps` counts the pairs,
  // `swaps_followed` those of them with two different answers, which thus follow the content.
  int64_t swaps = 0, swaps_followed = 0;
  double log_loss = 0;  // the mean of -log(probability of the right answer)

  // Return `correct` and `majority` as fractions of `examples`. REQUIRES: examples > 0.
  double Accuracy() const;
  double MajorityShare() const;
};

// Returns the probability of each answer. For kLabel, `rows` is the row of the text, and the
// probabilities are those of head.labels, in that order. For kBranch, `rows` has a row for each
// branch, and the probabilities are in the order of the rows. REQUIRES: `rows` is not empty, and
// each row has as many values as the head.
std::vector<double> AnswerProbabilities(const Head& head, std::span<const std::vector<float>> rows);
// Returns the index of the most probable answer, the first of them if several are equal. REQUIRES:
// there is an answer.
size_t BestAnswer(std::span<const double> probabilities);

// Checks whether a head can answer the examples. Returns INVALID_ARGUMENT if the data is of another
// kind than the head. Returns it, too, and names the line, if an example has a label that the head
// does not have. Does not check rows.
absl::Status CheckData(const Head& head, const HeadData& data);

// Evaluates the examples with these indices. REQUIRES: `indices` is not empty; CheckData has
// accepted the data; each row has as many values as the head.
HeadReport EvaluateHead(const Head& head, const HeadData& data, std::span<const size_t> indices);

struct TrainOptions {
  PromptForm form = PromptForm::kPlain;  // the form in which the texts were read; noted in the head
  // How much large weights cost (LogisticOptions): above 0, at most 1e30.
  double l2 = 0.01;
  // The fraction of examples that are not used for training: at least 0, below 1. More may be held
  // out, because groups stay whole (Divide).
  double hold_out = 0.2;
  uint64_t seed = 0;  // selects the groups that are held out
  // For kLabel, the label whose log-odds the head computes; "": the label that is sorted last. For
  // kBranch it must be "".
  std::string good;
  bool fast = false;  // fast numerics were allowed when the rows were computed; noted in the head
};

struct TrainedHead {
  Head head;
  HeadReport trained;                  // on the examples that it was trained with
  std::optional<HeadReport> held_out;  // on those that were held out; nullopt: none were
};

// Trains a head by logistic regression over standardised rows: each value less its mean over all
// training rows, divided by its deviation. For kLabel the regression separates the rows of the two
// labels. For kBranch its rows are differences: the best branch's row minus that of each other
// branch. It has no bias then, so that no order of branches is preferred.
//
// Errors:
//   INVALID_ARGUMENT     an option is out of its range, or `good` is no label; the examples do not
//                        have exactly two labels; no examples are left to train with, or all that
//                        are left have one label; a row has a value that is not finite; `model`,
//                        or the trained head, makes no sense (CheckHead)
//   FAILED_PRECONDITION  an example lacks a row of model.n_embd values; names the line
//   INTERNAL             the regression does not converge (FitLogistic)
absl::StatusOr<TrainedHead> TrainHead(const HeadData& data, const ModelIdentity& model,
                                      const TrainOptions& options);

}  // namespace trine
