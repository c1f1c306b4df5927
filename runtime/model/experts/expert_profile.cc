#include "runtime/model/experts/expert_profile.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/invalid.h"
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

// Reads members. Keeps the first error.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  const absl::Status& status() const { return status_; }
  // Returns a member of the wanted kind; null: there is none.
  const Json* Member(const char* name, bool (Json::*is)() const noexcept, const char* wrong) {
    const auto found = json_.is_object() ? json_.find(name) : json_.end();
    if (found != json_.end() && ((*found).*is)()) return &*found;
    Fail(name, found == json_.end() ? "is missing" : wrong);
    return nullptr;
  }
  std::string Text(const char* name) {
    const Json* json = Member(name, &Json::is_string, "is no text");
    return json != nullptr ? json->get<std::string>() : "";
  }
  // Returns a whole number of at least 1 and at most `most`.
  int64_t Count(const char* name, int64_t most) {
    const Json* json = Member(name, &Json::is_number_unsigned, "is no whole number from 1 on");
    const uint64_t value = json != nullptr ? json->get<uint64_t>() : 0;
    if (value >= 1 && value <= static_cast<uint64_t>(most)) return static_cast<int64_t>(value);
    Fail(name, absl::StrCat("is not from 1 to ", most));
    return 0;
  }
  void Fail(const char* name, const std::string& what) {
    if (status_.ok()) status_ = Invalid("\"", name, "\" ", what);
  }

 private:
  const Json& json_;
  absl::Status status_;
};

absl::StatusOr<ExpertModel> ModelFromJson(const Json& json) {
  Reader r(json);
  ExpertModel model;
  model.architecture = r.Text("architecture");
  if (model.architecture.empty() || model.architecture.size() > kMostNameBytes) {
    r.Fail("architecture", "is no name");
  }
  const std::string hash = r.Text("hash");
  const bool good = hash.size() == 16 && hash.find_first_not_of("0123456789abcdef") == hash.npos &&
                    absl::SimpleHexAtoi(hash, &model.hash);
  if (!good) r.Fail("hash", "is not 16 hexadecimal digits");
  model.layers = r.Count("layers", kMostLayers);
  model.experts = r.Count("experts", kMostExperts);
  model.used = r.Count("used", kMostExperts);
  if (model.used > model.experts) r.Fail("used", "is more than there are experts");
  if (!r.status().ok()) return r.status();
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

// Holds a lock of the file's folder, so that commands that end together add to the file one after
// the other.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    fd_ = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  // Waits for the lock, at most 2 s. Goes on without it in a folder that can't be locked at all, on
  // file systems without locks. Returns UNAVAILABLE if others hold it all the time.
  absl::Status Wait() const {
    constexpr int kTries = 200;
    for (int i = 0; i < kTries; ++i) {
      if (fd_ < 0 || flock(fd_, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
      if (errno != EWOULDBLOCK && errno != EINTR) return absl::OkStatus();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return absl::UnavailableError("others have locked its folder for too long");
  }
  ~FolderLock() {
    if (fd_ >= 0) close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

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
                      {"hash", absl::StrCat(absl::Hex(m.hash, absl::kZeroPad16))},
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
  Reader r(json);
  const Json* const model_json = r.Member("model", &Json::is_object, "is no object");
  const Json* const hits = r.Member("hits", &Json::is_array, "is no list");
  if (!r.status().ok()) return r.status();
  auto model = ModelFromJson(*model_json);
  if (!model.ok()) return model.status();
  ExpertProfile profile{*std::move(model), {}};
  const int64_t layers = profile.model.layers, experts = profile.model.experts;
  if (hits->size() != static_cast<size_t>(layers)) {
    return Invalid("it has the hits of ", hits->size(), " layers, and the model has ", layers);
  }
  // Bounds the memory that a small file can ask for.
  if (layers * experts > static_cast<int64_t>(kMostBytes)) {
    return Invalid(layers, " layers with ", experts, " experts are too many");
  }
  profile.counts.hits.resize(static_cast<size_t>(layers));
  for (size_t layer = 0; layer < hits->size(); ++layer) {
    const absl::Status s = ReadLayer((*hits)[layer], layer, experts, &profile.counts.hits[layer]);
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
  std::error_code error;
  const auto file = std::filesystem::status(path, error);
  if (file.type() == std::filesystem::file_type::not_found) {
    return absl::NotFoundError(absl::StrCat(path, ": there is no such file"));
  }
  if (error) return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
  if (!std::filesystem::is_regular_file(file)) return Invalid(path, ": it is no file");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return absl::PermissionDeniedError(absl::StrCat(path, ": it can't be read"));
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > kMostBytes)
    return Invalid(path, ": it is too large for a profile of experts");
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  auto profile = ParseExpertProfile(text);
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
  const FolderLock lock(path);
  if (absl::Status s = lock.Wait(); !s.ok()) return gguf::About(path, s);
  auto now = ReadExpertProfile(path);
  if (absl::IsNotFound(now.status())) now = read;
  if (!now.ok()) return now.status();
  if (absl::Status s = CheckFits(*now, read.model); !s.ok()) return gguf::About(path, s);
  now->Add(run);
  return gguf::OutputFile::Write(path, FormatExpertProfile(*now));
}

}  // namespace trine
