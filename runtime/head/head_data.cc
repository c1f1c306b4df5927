#include "runtime/head/head_data.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/base/invalid.h"
#include "runtime/gguf/quoted.h"
#include "runtime/pack_cache/hash64.h"

namespace trine {
namespace {

using ExampleJson = nlohmann::json;

absl::Status WrongExample(int64_t line, std::string_view what) {
  return Invalid("line ", line, ": ", absl::string_view(what.data(), what.size()));
}

absl::Status CheckMembers(const ExampleJson& json, int64_t line) {
  static const std::set<std::string> known = {"prompt", "label", "group", "branches", "best"};
  for (const auto& [name, value] : json.items()) {
    if (!known.contains(name)) {
      return WrongExample(line, absl::StrCat(gguf::Quoted(name), " is no member of an example"));
    }
  }
  for (const char* name : {"prompt", "label", "group"}) {
    if (json.contains(name) && !json[name].is_string()) {
      return WrongExample(line, absl::StrCat("\"", name, "\" is no text"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadLabel(const ExampleJson& json, Example* example) {
  if (!json.contains("prompt")) return WrongExample(example->line, "\"prompt\" is missing");
  if (!json.contains("label")) return WrongExample(example->line, "\"label\" is missing");
  if (json.contains("best")) return WrongExample(example->line, "\"best\" is without \"branches\"");
  example->texts = {json["prompt"].get<std::string>()};
  example->label = json["label"].get<std::string>();
  if (example->label.empty()) return WrongExample(example->line, "\"label\" is empty");
  return absl::OkStatus();
}

absl::Status ReadBranches(const ExampleJson& json, Example* example) {
  const ExampleJson& branches = json["branches"];
  if (json.contains("label")) {
    return WrongExample(example->line, "\"label\" beside \"branches\": it is \"best\" there");
  }
  if (!branches.is_array() || branches.size() < 2 || branches.size() > kMostBranches) {
    return WrongExample(example->line,
                        absl::StrCat("\"branches\" is no list of 2 to ", kMostBranches, " texts"));
  }
  const std::string prompt = json.contains("prompt") ? json["prompt"].get<std::string>() : "";
  for (const ExampleJson& branch : branches) {
    if (!branch.is_string())
      return WrongExample(example->line, "\"branches\" has one that is no text");
    example->texts.push_back(prompt + branch.get<std::string>());
  }
  if (!json.contains("best")) return WrongExample(example->line, "\"best\" is missing");
  const ExampleJson& best = json["best"];
  if (!best.is_number_unsigned() || best.get<uint64_t>() >= branches.size()) {
    return WrongExample(example->line,
                        absl::StrCat("\"best\" is no number from 0 to ", branches.size() - 1));
  }
  example->best = best.get<size_t>();
  return absl::OkStatus();
}

absl::StatusOr<Example> ParseExample(std::string_view text, int64_t line, HeadKind* kind) {
  const ExampleJson json = ExampleJson::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return WrongExample(line, "it is no JSON object");
  if (absl::Status s = CheckMembers(json, line); !s.ok()) return s;
  Example example;
  example.line = line;
  *kind = json.contains("branches") ? HeadKind::kBranch : HeadKind::kLabel;
  const absl::Status s =
      *kind == HeadKind::kBranch ? ReadBranches(json, &example) : ReadLabel(json, &example);
  if (!s.ok()) return s;
  for (const std::string& t : example.texts) {
    if (t.empty()) return WrongExample(line, "a text is empty");
  }
  if (json.contains("group")) example.group = json["group"].get<std::string>();
  return example;
}

}  // namespace

absl::StatusOr<HeadData> ParseHeadData(std::string_view text) {
  HeadData data;
  int64_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view one = text.substr(begin, end - begin);
    begin = end + 1;
    ++line;
    if (one.find_first_not_of(" \t\r") == one.npos) continue;
    HeadKind kind{};
    auto example = ParseExample(one, line, &kind);
    if (!example.ok()) return example.status();
    if (data.examples.empty()) data.kind = kind;
    if (kind != data.kind) return WrongExample(line, "it is of another kind than those before it");
    data.examples.push_back(*std::move(example));
  }
  if (data.examples.empty()) return absl::InvalidArgumentError("there are no examples");
  return data;
}

absl::StatusOr<std::vector<std::string>> TwoLabels(const HeadData& data) {
  std::set<std::string> labels;
  for (const Example& example : data.examples) {
    labels.insert(example.label);
    if (labels.size() > 2) {
      return WrongExample(example.line, absl::StrCat(gguf::Quoted(example.label),
                                                     " is a third label: there are two"));
    }
  }
  if (labels.size() < 2) {
    return Invalid("all examples have the label ", gguf::Quoted(absl::StrJoin(labels, "")),
                   ": there is nothing to tell apart");
  }
  return std::vector<std::string>(labels.begin(), labels.end());
}

Division Divide(const HeadData& data, double hold_out, uint64_t seed) {
  // Orders groups by the hashes of their names, and by the names where hashes are equal.
  std::map<std::pair<uint64_t, std::string>, std::vector<size_t>> groups;
  for (size_t i = 0; i < data.examples.size(); ++i) {
    const Example& example = data.examples[i];
    const std::string name = example.group.empty()
                                 ? absl::StrCat("text:", absl::StrJoin(example.texts, "\n"))
                                 : absl::StrCat("group:", example.group);
    groups[{Hash64(name.data(), name.size(), seed), name}].push_back(i);
  }
  const double wanted = hold_out * static_cast<double>(data.examples.size());
  Division division;
  for (const auto& [name, members] : groups) {
    auto& side =
        static_cast<double>(division.held_out.size()) < wanted ? division.held_out : division.train;
    side.insert(side.end(), members.begin(), members.end());
  }
  std::sort(division.train.begin(), division.train.end());
  std::sort(division.held_out.begin(), division.held_out.end());
  return division;
}

}  // namespace trine
