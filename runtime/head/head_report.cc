#include "runtime/head/head_report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/gguf/quoted.h"
#include "runtime/head/logistic.h"
#include "runtime/model/exact_double.h"

namespace trine {
namespace {

constexpr double kLeastProbability = 1e-300;

size_t RightAnswer(const Head& head, const Example& example) {
  if (head.kind == HeadKind::kBranch) return example.best;
  return example.label == head.labels[1] ? 1 : 0;
}

bool AreSwapped(const Head& head, const Example& a, const Example& b) {
  if (head.kind == HeadKind::kLabel) return a.label != b.label;
  return a.texts.size() == 2 && b.texts.size() == 2 && a.texts[0] == b.texts[1] &&
         a.texts[1] == b.texts[0] && a.texts[0] != a.texts[1];
}

std::vector<std::string> Answers(const Head& head, const HeadData& data,
                                 std::span<const size_t> indices) {
  if (head.kind == HeadKind::kLabel) return head.labels;
  size_t most = 0;
  for (const size_t i : indices) most = std::max(most, data.examples[i].texts.size());
  std::vector<std::string> answers;
  for (size_t k = 1; k <= most; ++k) answers.push_back(absl::StrCat(k));
  return answers;
}

}  // namespace

Interval WilsonInterval(int64_t successes, int64_t n) {
  if (n == 0) return {};
  constexpr double z = 1.959963984540054;
  const double count = static_cast<double>(n);
  const double p = static_cast<double>(successes) / count;
  const double middle = p + z * z / (2 * count);
  const double half = z * std::sqrt(p * (1 - p) / count + z * z / (4 * count * count));
  const double whole = 1 + z * z / count;
  return {std::max(0.0, (middle - half) / whole), std::min(1.0, (middle + half) / whole)};
}

double HeadReport::Accuracy() const {
  return static_cast<double>(correct) / static_cast<double>(examples);
}
double HeadReport::MajorityShare() const {
  return static_cast<double>(majority) / static_cast<double>(examples);
}

std::vector<double> AnswerProbabilities(const Head& head,
                                        std::span<const std::vector<float>> rows) {
  if (head.kind == HeadKind::kLabel) {
    const double log_odds = head.linear.LogOdds(rows[0]);
    return {Sigmoid(-log_odds), Sigmoid(log_odds)};
  }
  std::vector<double> scores;
  for (const std::vector<float>& row : rows) scores.push_back(head.linear.LogOdds(row));
  const double best = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) {
    score = exact_double::Exp(std::max(score - best, -690.0));
    sum += score;
  }
  for (double& score : scores) score /= sum;
  return scores;
}

size_t BestAnswer(std::span<const double> probabilities) {
  return static_cast<size_t>(std::max_element(probabilities.begin(), probabilities.end()) -
                             probabilities.begin());
}

absl::Status CheckData(const Head& head, const HeadData& data) {
  if (head.kind != data.kind) {
    return absl::InvalidArgumentError(absl::StrCat("the head is of the kind ",
                                                   HeadKindName(head.kind), ", the data of ",
                                                   HeadKindName(data.kind)));
  }
  if (head.kind == HeadKind::kBranch) return absl::OkStatus();
  for (const Example& example : data.examples) {
    if (example.label == head.labels[0] || example.label == head.labels[1]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("line ", example.line, ": the head knows ",
                     gguf::Printable(absl::StrJoin(head.labels, " and ")), ", not ",
                     gguf::Quoted(example.label)));
  }
  return absl::OkStatus();
}

HeadReport EvaluateHead(const Head& head, const HeadData& data, std::span<const size_t> indices) {
  HeadReport report;
  report.answers = Answers(head, data, indices);
  const size_t n = report.answers.size();
  report.confusion.assign(n, std::vector<int64_t>(n, 0));
  std::vector<size_t> chosen(data.examples.size(), 0);
  std::map<std::string, std::vector<size_t>> groups;
  for (const size_t i : indices) {
    const Example& example = data.examples[i];
    const std::vector<double> probabilities = AnswerProbabilities(head, example.rows);
    const size_t right = RightAnswer(head, example);
    chosen[i] = BestAnswer(probabilities);
    ++report.examples;
    report.correct += chosen[i] == right;
    ++report.confusion[right][chosen[i]];
    report.log_loss -= exact_double::Log(std::max(probabilities[right], kLeastProbability));
    if (!example.group.empty()) groups[example.group].push_back(i);
  }
  report.log_loss /= static_cast<double>(report.examples);
  report.accuracy = WilsonInterval(report.correct, report.examples);
  for (const std::vector<int64_t>& row : report.confusion) {
    int64_t count = 0;
    for (const int64_t x : row) count += x;
    report.majority = std::max(report.majority, count);
  }
  for (const auto& [name, members] : groups) {
    if (members.size() != 2) continue;
    if (!AreSwapped(head, data.examples[members[0]], data.examples[members[1]])) continue;
    ++report.swaps;
    report.swaps_followed += chosen[members[0]] != chosen[members[1]];
  }
  return report;
}

}  // namespace trine
