#include "runtime/model/experts/expert_profile.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/file_lock.h"
#include "runtime/base/invalid.h"
#include "runtime/base/json_members.h"
#include "runtime/gguf/output_file.h"
#include "runtime/gguf/quoted.h"

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr char kFormatKey[] = "trine_expert_stats";
constexpr uint64_t kMostBytes = uint64_t{16} << 20;
constexpr int64_t kMostLayers = 10000;
constexpr int64_t kMostExperts = 100000;
constexpr size_t kMostNameBytes = 100;
constexpr std::chrono::seconds kMostWait(2);

ExpertModel ModelFromJson(const Json& json, absl::Status* status) {
  JsonMembers r(json, status);
  ExpertModel model;
  model.architecture = r.Text("architecture");
  if (model.architecture.empty() || model.architecture.size() > kMostNameBytes) {
    r.Fail("architecture", "is no name");
  }
  model.hash = r.Hash("hash");
  model.layers = r.Count("layers", kMostLayers);
  model.experts = r.Count("experts", kMostExperts);
  model.used = r.Count("used", kMostExperts);
  if (model.used > model.experts) r.Fail("used", "is more than there are experts");
  return model;
}

absl::Status ReadLayer(const Json& json, size_t layer, int64_t experts,
                       std::vector<uint64_t>* hits) {
  if (!json.is_array()) return Invalid("the hits of layer ", layer, " are no list");
  hits->assign(static_cast<size_t>(experts), 0);
  if (json.empty()) return absl::OkStatus();
  if (json.size() != hits->size()) {
    return Invalid("layer ", layer, " has the hits of ", json.size(),
                   " experts, and the model has ", experts);
  }
  for (size_t e = 0; e < hits->size(); ++e) {
    if (!json[e].is_number_unsigned() || json[e].get<uint64_t>() > kMostHits) {
      return Invalid("the hits of expert ", e, " of layer ", layer,
                     " are no whole number from 0 to ", kMostHits);
    }
    (*hits)[e] = json[e].get<uint64_t>();
  }
  return absl::OkStatus();
}

absl::Status CheckFormat(const Json& json) {
  if (json.is_discarded()) return absl::InvalidArgumentError("it is not JSON");
  if (!json.is_object() || !json.contains(kFormatKey)) {
    return absl::InvalidArgumentError("it is no profile of experts");
  }
  const Json& format = json[kFormatKey];
  if (format.is_number_integer() && format == kFormat) return absl::OkStatus();
  return Invalid("its format is not ", kFormat, ", the one that is known here");
}

std::string Describe(const ExpertModel& model) {
  return absl::StrCat(gguf::Printable(model.architecture), " with ", model.used, " of ",
                      model.experts, " experts in ", model.layers,
                      model.layers == 1 ? " layer" : " layers");
}

}  // namespace

uint64_t ExpertProfile::tokens() const {
  uint64_t most = 0;
  for (const std::vector<uint64_t>& layer : counts.hits) {
    uint64_t sum = 0;
    for (const uint64_t hits : layer) sum += hits;
    most = std::max(most, sum);
  }
  return most / static_cast<uint64_t>(std::max<int64_t>(model.used, 1));
}

void ExpertProfile::Add(const ExpertCounts& more) {
  for (size_t layer = 0; layer < counts.hits.size(); ++layer) {
    for (size_t e = 0; e < counts.hits[layer].size(); ++e) {
      uint64_t& hits = counts.hits[layer][e];
      hits += std::min(more.hits[layer][e], kMostHits - std::min(hits, kMostHits));
    }
  }
}

std::string FormatExpertProfile(const ExpertProfile& profile) {
  const ExpertModel& m = profile.model;
  const Json model = {{"architecture", m.architecture},
                      {"hash", HashText(m.hash)},
                      {"layers", m.layers},
                      {"experts", m.experts},
                      {"used", m.used}};
  std::string text =
      absl::StrCat("{\n  \"", kFormatKey, "\": ", kFormat,
                   ",\n  \"model\": ", model.dump(-1, ' ', false, Json::error_handler_t::replace),
                   ",\n  \"tokens\": ", profile.tokens(), ",\n  \"hits\": [");
  for (size_t layer = 0; layer < profile.counts.hits.size(); ++layer) {
    const std::vector<uint64_t>& hits = profile.counts.hits[layer];
    const bool none = std::all_of(hits.begin(), hits.end(), [](uint64_t n) { return n == 0; });
    absl::StrAppend(&text, layer == 0 ? "\n    " : ",\n    ", none ? "[]" : Json(hits).dump());
  }
  return absl::StrCat(text, "\n  ]\n}\n");
}

absl::StatusOr<ExpertProfile> ParseExpertProfile(std::string_view text) {
  if (text.size() > kMostBytes) return Invalid("it has more than ", kMostBytes, " bytes");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (absl::Status s = CheckFormat(json); !s.ok()) return s;
  absl::Status status;
  JsonMembers r(json, &status);
  const Json& model = r.Object("model");
  const Json& hits = r.List("hits");
  if (!status.ok()) return status;
  ExpertProfile profile{ModelFromJson(model, &status), {}};
  if (!status.ok()) return status;
  const int64_t layers = profile.model.layers, experts = profile.model.experts;
  if (hits.size() != static_cast<size_t>(layers)) {
    return Invalid("it has the hits of ", hits.size(), " layers, and the model has ", layers);
  }
  // Bounds the memory that a small file can ask for.
  if (layers * experts > static_cast<int64_t>(kMostBytes)) {
    return Invalid(layers, " layers with ", experts, " experts are too many");
  }
  profile.counts.hits.resize(static_cast<size_t>(layers));
  for (size_t layer = 0; layer < hits.size(); ++layer) {
    const absl::Status s = ReadLayer(hits[layer], layer, experts, &profile.counts.hits[layer]);
    if (!s.ok()) return s;
  }
  return profile;
}

absl::Status CheckFits(const ExpertProfile& profile, const ExpertModel& model) {
  if (profile.model == model) return absl::OkStatus();
  ExpertModel same = profile.model;
  same.hash = model.hash;
  if (same == model) {
    return absl::FailedPreconditionError(
        "it counts the experts of another model: one with other weights");
  }
  return absl::FailedPreconditionError(
      absl::StrCat("it counts the experts of another model: ", Describe(profile.model),
                   ", and this one is ", Describe(model)));
}

absl::StatusOr<ExpertProfile> ReadExpertProfile(const std::string& path) {
  const auto text = ReadSmallFile(path, kMostBytes, "a profile of experts");
  if (!text.ok()) return text.status();
  auto profile = ParseExpertProfile(*text);
  if (!profile.ok()) return gguf::About(path, profile.status());
  return profile;
}

std::string WithoutLinks(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::filesystem::path now = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(now, error); ++i) {
    const std::filesystem::path next = std::filesystem::read_symlink(now, error);
    if (error) return path;
    now = now.parent_path() / next;  // `next` itself if it is absolute
  }
  return now.string();
}

absl::Status AddToExpertProfile(const std::string& path, const ExpertProfile& read,
                                const ExpertCounts& run) {
  // Commands that end together add to the file one after the other. On a file system without locks
  // the file is written all the same.
  FileLock lock(path, FileLock::Kind::kFolder);
  if (absl::IsDeadlineExceeded(lock.Lock(kMostWait))) {
    return absl::UnavailableError(
        absl::StrCat(path, ": others have locked its folder for too long"));
  }
  auto now = ReadExpertProfile(path);
  if (absl::IsNotFound(now.status())) now = read;
  if (!now.ok()) return now.status();
  if (absl::Status s = CheckFits(*now, read.model); !s.ok()) return gguf::About(path, s);
  now->Add(run);
  return gguf::OutputFile::Write(path, FormatExpertProfile(*now));
}

}  // namespace trine
