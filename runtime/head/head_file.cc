#include "runtime/head/head_file.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "runtime/base/invalid.h"
#include "runtime/base/json_members.h"
#include "runtime/gguf/output_file.h"
#include "runtime/gguf/quoted.h"

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;
constexpr char kVersionKey[] = "trine_head";
constexpr uint64_t kMostBytes = uint64_t{64} << 20;

Json ModelJson(const ModelIdentity& model) {
  return {{"architecture", model.architecture},
          {"n_embd", model.n_embd},
          {"n_vocab", model.n_vocab},
          {"hash", HashText(model.hash)}};
}

Json TrainingJson(const TrainingSummary& t) {
  Json json = {{"examples", t.examples},
               {"correct", t.correct},
               {"held_out", t.held_out},
               {"held_out_correct", t.held_out_correct},
               {"l2", t.l2},
               {"hold_out", t.hold_out},
               {"seed", t.seed},
               {"iterations", t.iterations},
               {"loss", t.loss}};
  if (t.fast) json["fast"] = true;
  return json;
}

// Returns the choice with that name.
template <typename Value, typename NameOf>
Value Named(const char* member, const std::string& text, std::initializer_list<Value> choices,
            NameOf name_of, absl::Status* status) {
  for (const Value value : choices) {
    if (text == name_of(value)) return value;
  }
  if (status->ok()) {
    *status = Invalid("\"", member, "\" is none that is known");
  }
  return *choices.begin();
}

absl::Status CheckVersion(const Json& json) {
  if (!json.is_object() || !json.contains(kVersionKey)) {
    return absl::InvalidArgumentError("it is no head");
  }
  const Json& version = json[kVersionKey];
  if (version.is_number_integer() && version == kVersion) return absl::OkStatus();
  if (version.is_number_integer() && version >= 1 && version < kVersion) {
    return Invalid("it is a head of version ", version.get<int>(),
                   ", which does not say which weights it was trained with: train it again");
  }
  return Invalid("its version is not ", kVersion, ", the one that is known here");
}

}  // namespace

std::string HeadPathFor(const std::string& model_path) {
  absl::string_view stem = model_path;
  absl::ConsumeSuffix(&stem, ".gguf");
  return absl::StrCat(stem, ".head.json");
}

absl::StatusOr<std::string> FormatHead(const Head& head) {
  if (absl::Status s = CheckHead(head); !s.ok()) return s;
  const Json json = {{kVersionKey, kVersion},
                     {"kind", HeadKindName(head.kind)},
                     {"form", PromptFormName(head.form)},
                     {"numerics", head.numerics},
                     {"model", ModelJson(head.model)},
                     {"labels", head.labels},
                     {"training", TrainingJson(head.training)},
                     {"bias", head.linear.bias},
                     {"mean", head.linear.mean},
                     {"scale", head.linear.scale},
                     {"weights", head.linear.weights}};
  std::string text = "{";  // one member per line
  for (const auto& [name, value] : json.items()) {
    absl::StrAppend(&text, text.size() > 1 ? "," : "", "\n  \"", name, "\": ", value.dump());
  }
  return absl::StrCat(text, "\n}\n");
}

absl::StatusOr<Head> ParseHead(std::string_view text) {
  if (text.size() > kMostBytes) return Invalid("it has more than ", kMostBytes, " bytes");
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return absl::InvalidArgumentError("it is not JSON");
  if (absl::Status s = CheckVersion(json); !s.ok()) return s;
  absl::Status status;
  JsonMembers r(json, &status);
  Head head;
  head.kind =
      Named("kind", r.Text("kind"), {HeadKind::kLabel, HeadKind::kBranch}, HeadKindName, &status);
  head.form = Named("form", r.Text("form"), {PromptForm::kPlain, PromptForm::kChat}, PromptFormName,
                    &status);
  head.numerics = r.Integer("numerics");
  JsonMembers model(r.Object("model"), &status), training(r.Object("training"), &status);
  head.model.architecture = model.Text("architecture");
  head.model.n_embd = model.Integer("n_embd");
  head.model.n_vocab = model.Integer("n_vocab");
  head.model.hash = model.Hash("hash");
  head.labels = r.Texts("labels");
  TrainingSummary& t = head.training;
  t.examples = training.Integer("examples");
  t.correct = training.Integer("correct");
  t.held_out = training.Integer("held_out");
  t.held_out_correct = training.Integer("held_out_correct");
  t.l2 = training.Number("l2");
  t.hold_out = training.Number("hold_out");
  t.seed = training.Unsigned("seed");
  t.iterations = training.Integer("iterations");
  t.loss = training.Number("loss");
  t.fast = training.Has("fast") && training.Flag("fast");
  head.linear.bias = r.Number("bias");
  head.linear.mean = r.Numbers("mean");
  head.linear.scale = r.Numbers("scale");
  head.linear.weights = r.Numbers("weights");
  if (!status.ok()) return status;
  if (absl::Status s = CheckHead(head); !s.ok()) return s;
  return head;
}

absl::StatusOr<Head> ReadHead(const std::string& path) {
  const auto text = ReadSmallFile(path, kMostBytes, "a head");
  if (!text.ok()) return text.status();
  auto head = ParseHead(*text);
  if (!head.ok()) return gguf::About(path, head.status());
  return head;
}

absl::Status WriteHead(const std::string& path, const Head& head) {
  const auto text = FormatHead(head);
  if (!text.ok()) return gguf::About(path, text.status());
  return gguf::OutputFile::Write(path, *text);
}

}  // namespace trine
