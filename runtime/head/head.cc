#include "runtime/head/head.h"

#include <bit>
#include <cmath>
#include <string_view>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/builder.h"
#include "runtime/pack_cache/hash64.h"
#include "runtime/tokenizer/utf8.h"
#include "trine/backend.h"

namespace trine {
namespace {

// Hashes items one after another, each preceded by its length or type.
class Digest {
 public:
  void Add(uint64_t word) { gguf::AppendNumber(word, &bytes_); }
  void Add(double x) { Add(std::bit_cast<uint64_t>(x)); }
  void Add(std::string_view text) { gguf::AppendString(text, &bytes_); }
  void Add(const gguf::Array& array) {
    Add(uint64_t{array.element_type});
    Add(array.size);
    for (const gguf::Value& value : array.nested) Add(value);
    for (const int64_t x : array.integers) Add(static_cast<uint64_t>(x));
    for (const double x : array.floats) Add(x);
    for (const std::string_view text : array.strings) Add(text);
  }
  void Add(const gguf::Value& value) {
    Add(uint64_t{value.type});
    if (const auto* flag = std::get_if<bool>(&value.value)) Add(uint64_t{*flag});
    if (const auto* x = std::get_if<int64_t>(&value.value)) Add(static_cast<uint64_t>(*x));
    if (const auto* x = std::get_if<uint64_t>(&value.value)) Add(*x);
    if (const auto* x = std::get_if<double>(&value.value)) Add(*x);
    if (const auto* text = std::get_if<std::string_view>(&value.value)) Add(*text);
    if (const auto* array = std::get_if<gguf::Array>(&value.value)) Add(*array);
  }
  uint64_t Hash() const { return Hash64(bytes_.data(), bytes_.size(), 0); }

 private:
  std::string bytes_;
};

constexpr int64_t kMostValues = 1 << 20;
constexpr size_t kMostLabelBytes = 256;
// Within these limits no row of finite binary32 values overflows.
constexpr double kLargest = 1e30, kSmallestScale = 1e-30;

absl::Status WrongMember(const char* member, const std::string& what) {
  return Invalid("\"", member, "\" ", what);
}

absl::Status CheckValues(const char* member, const std::vector<double>& values, int64_t count,
                         double least_magnitude) {
  if (static_cast<int64_t>(values.size()) != count) {
    return WrongMember(member, absl::StrCat("has ", values.size(), " values, n_embd is ", count));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const bool positive = least_magnitude == 0 || values[i] >= least_magnitude;
    if (positive && std::abs(values[i]) <= kLargest) continue;
    return WrongMember(member, absl::StrCat("has the value ", values[i], " at ", i));
  }
  return absl::OkStatus();
}

absl::Status CheckLabels(const Head& head) {
  const size_t wanted = head.kind == HeadKind::kLabel ? 2 : 0;
  if (head.labels.size() != wanted) {
    return WrongMember("labels",
                       absl::StrCat("has ", head.labels.size(), " of them, a head of the kind ",
                                    HeadKindName(head.kind), " has ", wanted));
  }
  for (const std::string& label : head.labels) {
    if (label.empty() || label.size() > kMostLabelBytes) {
      return WrongMember("labels", absl::StrCat("has one of ", label.size(), " bytes"));
    }
    if (absl::Status s = ValidateUtf8(label, "a label"); !s.ok()) return s;
  }
  if (wanted == 2 && head.labels[0] == head.labels[1])
    return WrongMember("labels", "has the same twice");
  return absl::OkStatus();
}

absl::Status CheckTraining(const TrainingSummary& t) {
  if (t.examples < 1 || t.correct < 0 || t.correct > t.examples) {
    return WrongMember("training", "has senseless numbers of examples");
  }
  if (t.held_out < 0 || t.held_out_correct < 0 || t.held_out_correct > t.held_out) {
    return WrongMember("training", "has senseless numbers of held-out examples");
  }
  if (!(t.l2 > 0 && t.l2 <= kLargest && t.hold_out >= 0 && t.hold_out < 1)) {
    return WrongMember("training", "has a senseless \"l2\" or \"hold_out\"");
  }
  if (t.iterations < 0 || !(t.loss >= 0 && t.loss <= kLargest)) {
    return WrongMember("training", "has a senseless \"iterations\" or \"loss\"");
  }
  return absl::OkStatus();
}

// Hashes the metadata, the tensors' names, types and shapes, and some bytes of each tensor
// (ModelId): not all, so that a large model takes no longer. Ignores the keys about a file's split.
uint64_t HashContents(const gguf::File& file) {
  Digest digest;
  for (const gguf::Metadata::Entry& entry : file.metadata().entries()) {
    if (absl::StartsWith({entry.key.data(), entry.key.size()}, "split.")) continue;
    digest.Add(entry.key);
    digest.Add(entry.value);
  }
  digest.Add(ModelId(file));
  return digest.Hash();
}

}  // namespace

double LinearHead::LogOdds(std::span<const float> row) const {
  double sum = bias;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i] * ((static_cast<double>(row[i]) - mean[i]) / scale[i]);
  }
  return sum;
}

ModelIdentity IdentityOf(const gguf::File& file, const ModelConfig& config) {
  return {config.architecture, config.n_embd, config.n_vocab, HashContents(file)};
}

const char* HeadKindName(HeadKind kind) { return kind == HeadKind::kLabel ? "label" : "branch"; }
const char* PromptFormName(PromptForm form) {
  return form == PromptForm::kPlain ? "plain" : "chat";
}

absl::Status CheckHead(const Head& head) {
  const ModelIdentity& model = head.model;
  if (head.numerics < 1) return WrongMember("numerics", "is no version");
  if (model.architecture.empty() || model.architecture.size() > kMostLabelBytes) {
    return WrongMember("model", "has no sensible \"architecture\"");
  }
  if (absl::Status s = ValidateUtf8(model.architecture, "the architecture"); !s.ok()) return s;
  if (model.n_embd < 1 || model.n_embd > kMostValues || model.n_vocab < 1) {
    return WrongMember("model", "has a senseless \"n_embd\" or \"n_vocab\"");
  }
  if (absl::Status s = CheckLabels(head); !s.ok()) return s;
  if (absl::Status s = CheckTraining(head.training); !s.ok()) return s;
  const LinearHead& linear = head.linear;
  if (!(std::abs(linear.bias) <= kLargest)) return WrongMember("bias", "is no sensible number");
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
  if (head.model.n_embd != model.n_embd) return differs("n_embd", head.model.n_embd, model.n_embd);
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

absl::StatusOr<ValueHead> ValueHead::Create(const ModelIdentity& model, Head head) {
  if (absl::Status s = CheckHead(head); !s.ok()) return s;
  if (absl::Status s = CheckFits(head, model); !s.ok()) return s;
  return ValueHead(std::move(head));
}

}  // namespace trine
