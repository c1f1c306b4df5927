// How well a head does on examples whose rows have been read. Plain values and pure functions; any
// thread.
#ifndef TRINE_RUNTIME_HEAD_HEAD_REPORT_H_
#define TRINE_RUNTIME_HEAD_HEAD_REPORT_H_

#include <cstddef>
#include <cstdint>
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

// Wilson's, at 95 %, for a share of which `successes` of `n` were seen; 0 to 1 for n = 0.
Interval WilsonInterval(int64_t successes, int64_t n);

struct HeadReport {
  int64_t examples = 0, correct = 0;
  Interval accuracy;                 // around correct / examples
  int64_t majority = 0;              // correct, had the most frequent answer always been given
  std::vector<std::string> answers;  // labels, or branches' numbers from 1
  std::vector<std::vector<int64_t>> confusion;  // [what is right][what was chosen]
  // Groups of two that differ in their order alone: both labels, or the same branches the other way
  // round. How many there are, and in how many the choice went with the branch.
  int64_t swaps = 0, swaps_followed = 0;
  double log_loss = 0;  // mean, of the right answer's probability

  double Accuracy() const;
  double MajorityShare() const;
};

// Probabilities of the answers: of the labels, or of the branches whose rows these are.
std::vector<double> AnswerProbabilities(const Head& head, std::span<const std::vector<float>> rows);
// The most probable, the first of those that are equal.
size_t BestAnswer(std::span<const double> probabilities);

// INVALID_ARGUMENT for data of another kind than the head, or with a label that it does not know,
// by its line.
absl::Status CheckData(const Head& head, const HeadData& data);

// Over the examples with these indices, one at least, which have been checked.
HeadReport EvaluateHead(const Head& head, const HeadData& data, std::span<const size_t> indices);

}  // namespace trine

#endif  // TRINE_RUNTIME_HEAD_HEAD_REPORT_H_
