#include "runtime/head/train_head.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/quoted.h"
#include "runtime/head/logistic.h"
#include "runtime/model/arch/exact_double.h"
#include "trine/backend.h"

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

// The rows, one after another, as the regression takes them.
struct Problem {
  std::vector<double> rows;
  std::vector<uint8_t> positive;
};

constexpr double kConstant = 1e-12;  // relative to the mean: a smaller deviation is rounding

// Sets the mean and the scale of each value over the rows, at least one. The scale is the
// deviation, or 1 if the value is always the same.
void Standardize(std::span<const std::vector<float>* const> rows, LinearHead* head) {
  const size_t width = rows[0]->size();
  const double n = static_cast<double>(rows.size());
  head->mean.assign(width, 0.0);
  head->scale.assign(width, 0.0);
  for (const std::vector<float>* row : rows) {
    for (size_t i = 0; i < width; ++i) head->mean[i] += static_cast<double>((*row)[i]);
  }
  for (double& mean : head->mean) mean /= n;
  for (const std::vector<float>* row : rows) {
    for (size_t i = 0; i < width; ++i) {
      const double off = static_cast<double>((*row)[i]) - head->mean[i];
      head->scale[i] += off * off;
    }
  }
  for (size_t i = 0; i < width; ++i) {
    head->scale[i] = std::sqrt(head->scale[i] / n);
    if (!(head->scale[i] > kConstant * std::abs(head->mean[i]))) head->scale[i] = 1.0;
  }
}

double Standardized(const LinearHead& linear, const std::vector<float>& row, size_t i) {
  return (static_cast<double>(row[i]) - linear.mean[i]) / linear.scale[i];
}

void AddLabelled(const Head& head, const Example& example, Problem* problem) {
  const std::vector<float>& row = example.rows[0];
  for (size_t i = 0; i < row.size(); ++i) {
    problem->rows.push_back(Standardized(head.linear, row, i));
  }
  problem->positive.push_back(example.label == head.labels[1] ? 1 : 0);
}

void AddBranches(const Head& head, const Example& example, Problem* problem) {
  const std::vector<float>& best = example.rows[example.best];
  for (size_t k = 0; k < example.rows.size(); ++k) {
    if (k == example.best) continue;
    for (size_t i = 0; i < best.size(); ++i) {
      problem->rows.push_back(Standardized(head.linear, best, i) -
                              Standardized(head.linear, example.rows[k], i));
    }
    problem->positive.push_back(1);
  }
}

absl::Status SetLabels(const HeadData& data, const std::string& good, Head* head) {
  if (data.kind == HeadKind::kBranch) {
    if (good.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("branches have no label that could be the good one");
  }
  auto labels = TwoLabels(data);
  if (!labels.ok()) return labels.status();
  if (!good.empty()) {
    const auto found = std::find(labels->begin(), labels->end(), good);
    if (found == labels->end()) {
      return Invalid("no example has the label ", gguf::Quoted(good), ": they are ",
                     gguf::Printable(absl::StrJoin(*labels, " and ")));
    }
    std::swap(*found, labels->back());
  }
  head->labels = *std::move(labels);
  return absl::OkStatus();
}

absl::Status CheckRows(const HeadData& data, const ModelIdentity& model) {
  for (const Example& example : data.examples) {
    bool good = example.rows.size() == example.texts.size();
    for (const auto& row : example.rows) good = good && std::ssize(row) == model.n_embd;
    if (!good) {
      return absl::FailedPreconditionError(
          absl::StrCat("line ", example.line, ": its rows have not been read"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Problem> MakeProblem(const HeadData& data, const std::vector<size_t>& train,
                                    Head* head) {
  std::vector<const std::vector<float>*> rows;
  for (const size_t i : train) {
    for (const std::vector<float>& row : data.examples[i].rows) rows.push_back(&row);
  }
  if (rows.empty()) return absl::InvalidArgumentError("no examples are left to train with");
  Standardize(rows, &head->linear);
  Problem problem;
  for (const size_t i : train) {
    if (head->kind == HeadKind::kLabel) AddLabelled(*head, data.examples[i], &problem);
    if (head->kind == HeadKind::kBranch) AddBranches(*head, data.examples[i], &problem);
  }
  const auto count = std::count(problem.positive.begin(), problem.positive.end(), 1);
  if (head->kind == HeadKind::kLabel && (count == 0 || count == std::ssize(problem.positive))) {
    return absl::InvalidArgumentError(
        "the examples that are left to train with all have one label: hold fewer out, or give more "
        "groups");
  }
  return problem;
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
    return Invalid("the head is of the kind ", HeadKindName(head.kind), ", the data of ",
                   HeadKindName(data.kind));
  }
  if (head.kind == HeadKind::kBranch) return absl::OkStatus();
  for (const Example& example : data.examples) {
    if (example.label == head.labels[0] || example.label == head.labels[1]) continue;
    return Invalid("line ", example.line, ": the head knows ",
                   gguf::Printable(absl::StrJoin(head.labels, " and ")), ", not ",
                   gguf::Quoted(example.label));
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

absl::StatusOr<TrainedHead> TrainHead(const HeadData& data, const ModelIdentity& model,
                                      const TrainOptions& options) {
  if (!(options.hold_out >= 0 && options.hold_out < 1)) {
    return absl::InvalidArgumentError("what is held out is 0 to less than 1 of the examples");
  }
  TrainedHead result;
  Head& head = result.head;
  head.kind = data.kind;
  head.form = options.form;
  head.numerics = TRINE_NUMERICS_VERSION;
  head.training.fast = options.fast;
  head.model = model;
  if (absl::Status s = SetLabels(data, options.good, &head); !s.ok()) return s;
  if (absl::Status s = CheckRows(data, model); !s.ok()) return s;
  const Division division = Divide(data, options.hold_out, options.seed);
  const auto problem = MakeProblem(data, division.train, &head);
  if (!problem.ok()) return problem.status();
  LogisticOptions logistic;
  logistic.l2 = options.l2;
  logistic.bias = data.kind == HeadKind::kLabel;
  auto fit =
      FitLogistic(problem->rows, static_cast<size_t>(model.n_embd), problem->positive, logistic);
  if (!fit.ok()) return fit.status();
  head.linear.weights = std::move(fit->weights);
  head.linear.bias = fit->bias;

  result.trained = EvaluateHead(head, data, division.train);
  if (!division.held_out.empty()) {
    result.held_out = EvaluateHead(head, data, division.held_out);
    head.training.held_out = result.held_out->examples;
    head.training.held_out_correct = result.held_out->correct;
  }
  head.training.examples = result.trained.examples;
  head.training.correct = result.trained.correct;
  head.training.l2 = options.l2;
  head.training.hold_out = options.hold_out;
  head.training.seed = options.seed;
  head.training.iterations = fit->iterations;
  head.training.loss = fit->loss;
  if (absl::Status s = CheckHead(head); !s.ok()) return s;
  return result;
}

}  // namespace trine
