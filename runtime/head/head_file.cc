#include "runtime/head/head_file.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "runtime/base/invalid.h"
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
          {"hash", absl::StrCat(absl::Hex(model.hash, absl::kZeroPad16))}};
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

// Reads members. Keeps the first error.
class Reader {
 public:
  Reader(const Json& json, absl::Status* status) : json_(json), status_(status) {}

  std::string Text(const char* name) {
    return Get<std::string>(name, &Json::is_string, "is no text");
  }
  int64_t Integer(const char* name) {
    const auto fits = [](const Json& json) {
      constexpr auto kMost = uint64_t{std::numeric_limits<int64_t>::max()};
      return json.is_number_integer() &&
             !(json.is_number_unsigned() && json.get<uint64_t>() > kMost);
    };
    return Get<int64_t>(name, fits, "is no whole number");
  }
  uint64_t Unsigned(const char* name) {
    return Get<uint64_t>(name, &Json::is_number_unsigned, "is no whole number");
  }
  bool Flag(const char* name) { return Get<bool>(name, &Json::is_boolean, "is no true or false"); }
  double Number(const char* name) { return Get<double>(name, &Json::is_number, "is no number"); }
  std::vector<double> Numbers(const char* name) {
    return List<double>(name, &Json::is_number, "has something that is no number");
  }
  std::vector<std::string> Texts(const char* name) {
    return List<std::string>(name, &Json::is_string, "has something that is no text");
  }
  // Returns an empty object if there is none, so that its members are reported as missing, too.
  Json Object(const char* name) {
    const Json* json = Member(name, &Json::is_object, "is no object");
    return json != nullptr ? *json : Json::object();
  }

 private:
  template <class T, class Is>
  T Get(const char* name, Is is, const char* wrong) {
    const Json* json = Member(name, is, wrong);
    return json != nullptr ? json->template get<T>() : T();
  }
  template <class T, class Is>
  std::vector<T> List(const char* name, Is is, const char* wrong) {
    const Json* list = Member(name, &Json::is_array, "is no list");
    std::vector<T> values;
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
      if (!std::invoke(is, (*list)[i])) {
        Fail(name, wrong);
        return {};
      }
      values.push_back((*list)[i].template get<T>());
    }
    return values;
  }
  template <class Is>
  const Json* Member(const char* name, Is is, const char* wrong) {
    const auto found = json_.find(name);
    if (found != json_.end() && std::invoke(is, *found)) return &*found;
    Fail(name, found == json_.end() ? "is missing" : wrong);
    return nullptr;
  }
  void Fail(const char* name, const char* what) {
    if (status_->ok()) *status_ = Invalid("\"", name, "\" ", what);
  }

  const Json& json_;
  absl::Status* status_;
};

uint64_t ParseHash(const std::string& text, absl::Status* status) {
  uint64_t hash = 0;
  const bool good = text.size() == 16 && text.find_first_not_of("0123456789abcdef") == text.npos &&
                    absl::SimpleHexAtoi(text, &hash);
  if (!good && status->ok()) {
    *status = absl::InvalidArgumentError("\"hash\" is not 16 hexadecimal digits");
  }
  return hash;
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
  Reader r(json, &status);
  Head head;
  head.kind =
      Named("kind", r.Text("kind"), {HeadKind::kLabel, HeadKind::kBranch}, HeadKindName, &status);
  head.form = Named("form", r.Text("form"), {PromptForm::kPlain, PromptForm::kChat}, PromptFormName,
                    &status);
  head.numerics = r.Integer("numerics");
  const Json model_json = r.Object("model"), training_json = r.Object("training");
  Reader model(model_json, &status), training(training_json, &status);
  head.model.architecture = model.Text("architecture");
  head.model.n_embd = model.Integer("n_embd");
  head.model.n_vocab = model.Integer("n_vocab");
  head.model.hash = ParseHash(model.Text("hash"), &status);
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
  t.fast = training_json.contains("fast") && training.Flag("fast");
  head.linear.bias = r.Number("bias");
  head.linear.mean = r.Numbers("mean");
  head.linear.scale = r.Numbers("scale");
  head.linear.weights = r.Numbers("weights");
  if (!status.ok()) return status;
  if (absl::Status s = CheckHead(head); !s.ok()) return s;
  return head;
}

absl::StatusOr<Head> ReadHead(const std::string& path) {
  std::error_code error;
  const auto file = std::filesystem::status(path, error);
  if (!std::filesystem::exists(file)) {
    return absl::NotFoundError(absl::StrCat(path, ": there is no such file"));
  }
  if (!std::filesystem::is_regular_file(file)) return Invalid(path, ": it is no file");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return absl::PermissionDeniedError(absl::StrCat(path, ": it can't be read"));
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > kMostBytes) return Invalid(path, ": it is too large for a head");
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  auto head = ParseHead(text);
  if (!head.ok()) return gguf::About(path, head.status());
  return head;
}

absl::Status WriteHead(const std::string& path, const Head& head) {
  const auto text = FormatHead(head);
  if (!text.ok()) return gguf::About(path, text.status());
  return gguf::OutputFile::Write(path, *text);
}

}  // namespace trine
