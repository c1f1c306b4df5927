#include "runtime/head/head.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/tokenizer/utf8.h"
#include "trine/backend.h"

namespace trine {
namespace {

constexpr int64_t kMostValues = 1 << 20;
constexpr size_t kMostLabelBytes = 256;
// Within these no row of finite binary32 values overflows.
constexpr double kLargest = 1e30, kSmallestScale = 1e-30;

absl::Status Wrong(const char* member, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("\"", member, "\" ", what));
}

absl::Status CheckValues(const char* member, const std::vector<double>& values, int64_t count,
                         double least_magnitude) {
  if (static_cast<int64_t>(values.size()) != count) {
    return Wrong(member, absl::StrCat("has ", values.size(), " values, n_embd is ", count));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const bool positive = least_magnitude == 0 || values[i] >= least_magnitude;
    if (positive && std::abs(values[i]) <= kLargest) continue;
    return Wrong(member, absl::StrCat("has the value ", values[i], " at ", i));
  }
  return absl::OkStatus();
}

absl::Status CheckLabels(const Head& head) {
  const size_t wanted = head.kind == HeadKind::kLabel ? 2 : 0;
  if (head.labels.size() != wanted) {
    return Wrong("labels", absl::StrCat("has ", head.labels.size(), " of them, a head of the kind ",
                                        HeadKindName(head.kind), " has ", wanted));
  }
  for (const std::string& label : head.labels) {
    if (label.empty() || label.size() > kMostLabelBytes) {
      return Wrong("labels", absl::StrCat("has one of ", label.size(), " bytes"));
    }
    if (absl::Status s = ValidateUtf8(label, "a label"); !s.ok()) return s;
  }
  if (wanted == 2 && head.labels[0] == head.labels[1]) return Wrong("labels", "has the same twice");
  return absl::OkStatus();
}

absl::Status CheckTraining(const TrainingSummary& t) {
  if (t.examples < 1 || t.correct < 0 || t.correct > t.examples) {
    return Wrong("training", "has senseless numbers of examples");
  }
  if (t.held_out < 0 || t.held_out_correct < 0 || t.held_out_correct > t.held_out) {
    return Wrong("training", "has senseless numbers of held-out examples");
  }
  if (!(t.l2 > 0 && t.l2 <= kLargest && t.hold_out >= 0 && t.hold_out < 1)) {
    return Wrong("training", "has a senseless \"l2\" or \"hold_out\"");
  }
  if (t.iterations < 0 || !(t.loss >= 0 && t.loss <= kLargest)) {
    return Wrong("training", "has a senseless \"iterations\" or \"loss\"");
  }
  return absl::OkStatus();
}

}  // namespace

const char* HeadKindName(HeadKind kind) { return kind == HeadKind::kLabel ? "label" : "branch"; }
const char* PromptFormName(PromptForm form) {
  return form == PromptForm::kPlain ? "plain" : "chat";
}

absl::Status CheckHead(const Head& head) {
  const ModelIdentity& model = head.model;
  if (head.numerics < 1) return Wrong("numerics", "is no version");
  if (model.architecture.empty() || model.architecture.size() > kMostLabelBytes) {
    return Wrong("model", "has no sensible \"architecture\"");
  }
  if (absl::Status s = ValidateUtf8(model.architecture, "the architecture"); !s.ok()) return s;
  if (model.n_embd < 1 || model.n_embd > kMostValues || model.n_vocab < 1) {
    return Wrong("model", "has a senseless \"n_embd\" or \"n_vocab\"");
  }
  if (absl::Status s = CheckLabels(head); !s.ok()) return s;
  if (absl::Status s = CheckTraining(head.training); !s.ok()) return s;
  const LinearHead& linear = head.linear;
  if (!(std::abs(linear.bias) <= kLargest)) return Wrong("bias", "is no sensible number");
  if (absl::Status s = CheckValues("mean", linear.mean, model.n_embd, 0); !s.ok()) return s;
  absl::Status s = CheckValues("scale", linear.scale, model.n_embd, kSmallestScale);
  if (!s.ok()) return s;
  return CheckValues("weights", linear.weights, model.n_embd, 0);
}

absl::Status CheckFits(const Head& head, const ModelIdentity& model) {
  const auto differs = [](const auto& what, const auto& trained, const auto& is) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the head was trained for another model: ", what, " ", trained, ", this one has ", is));
  };
  if (head.model.architecture != model.architecture) {
    return differs("architecture", head.model.architecture, model.architecture);
  }
  if (head.model.n_embd != model.n_embd) {
    return differs("n_embd", head.model.n_embd, model.n_embd);
  }
  if (head.model.n_vocab != model.n_vocab) {
    return differs("a vocabulary of", head.model.n_vocab, model.n_vocab);
  }
  if (head.model.hash != model.hash) {
    return differs("metadata and weights with the hash",
                   absl::Hex(head.model.hash, absl::kZeroPad16),
                   absl::Hex(model.hash, absl::kZeroPad16));
  }
  if (head.numerics != TRINE_NUMERICS_VERSION) {
    return absl::FailedPreconditionError(absl::StrCat("the head was trained under numerics ",
                                                      head.numerics, ", this is ",
                                                      TRINE_NUMERICS_VERSION, ": train it again"));
  }
  return absl::OkStatus();
}

}  // namespace trine
