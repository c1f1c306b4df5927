#include "runtime/head/train_head.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/gguf/quoted.h"
#include "runtime/head/logistic.h"
#include "trine/backend.h"

namespace trine {
namespace {

// Rows behind one another, as the regression takes them.
struct Problem {
  std::vector<double> rows;
  std::vector<uint8_t> positive;
};

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
      return absl::InvalidArgumentError(
          absl::StrCat("no example has the label ", gguf::Quoted(good), ": they are ",
                       gguf::Printable(absl::StrJoin(*labels, " and "))));
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
