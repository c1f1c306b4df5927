#include "plugins/self_test/passed_devices.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "detect/cpu/cpu.h"
#include "plugins/device_text.h"

namespace trine {
namespace {

namespace fs = std::filesystem;

// Must change when the self-test's graphs change.
constexpr char kTest[] = "self-test 1";
constexpr size_t kMostFiles = 64;
constexpr char kComplete[] = "all";

// Hashes text. The library does not promise the same hash to another version of itself: then a
// device is tested once more.
uint64_t HashOf(std::string_view text) { return std::hash<std::string_view>()(text); }

// Returns the size and a hash of the file, or nullopt if it can't be read.
std::optional<std::string> Fingerprint(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string block(1 << 20, '\0');
  uint64_t bytes = 0, hash = 0;
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    const auto read = static_cast<size_t>(file.gcount());
    bytes += read;
    hash = hash * 0x9e3779b97f4a7c15u + HashOf(std::string_view(block).substr(0, read));
  }
  if (!file.eof() || bytes == 0) return std::nullopt;
  return absl::StrCat(bytes, " bytes, ", absl::Hex(hash, absl::kZeroPad16));
}

// Returns the folder of the files: TRINE_SELF_TEST_CACHE, or else a folder of the user's cache.
// Returns "" if there is none, or if the variable is "off".
std::string Folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  const std::string named = variable("TRINE_SELF_TEST_CACHE");
  if (absl::EqualsIgnoreCase(named, "off")) return "";
  if (!named.empty()) return named;
  const std::string cache = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (absl::StartsWith(cache, "/")) return cache + "/trine/self-test";
  return absl::StartsWith(home, "/") ? home + "/.cache/trine/self-test" : "";
}

// Names the processor and what it can do. A plugin may choose its code by that.
std::string Processor() {
  detect::Notes notes;
  const detect::ProcessorInfo processor = detect::ReadProcessor(detect::FileRoot(""), &notes);
  std::string text = processor.model;
  for (const detect::SimdFeature& feature : processor.features) {
    if (feature.advertised) absl::StrAppend(&text, " ", feature.name);
  }
  return text;
}

// Removes all files of the folder but the newest. Ignores errors.
void KeepNewest(const std::string& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const fs::file_time_type written = at->last_write_time(gone);
    if (!gone && at->path().extension() == ".passed") found.emplace_back(written, at->path());
  }
  std::sort(found.rbegin(), found.rend());
  for (size_t i = kMostFiles; i < found.size(); ++i) fs::remove(found[i].second, error);
}

}  // namespace

PassedDevices::PassedDevices(const std::string& plugin_path, const std::string& options)
    : folder_(Folder()) {
  const auto file = Fingerprint(plugin_path);
  if (!file) folder_.clear();
  if (folder_.empty()) return;
  key_ = absl::StrCat(kTest, ", Trine " TRINE_VERSION ", numerics ", TRINE_NUMERICS_VERSION,
                      "\nplugin ", *file, "\noptions ", options, "\nprocessor ", Processor(), "\n");
}

std::string PassedDevices::Key(uint32_t index, const trine_device_info& info) const {
  const absl::string_view uuid(reinterpret_cast<const char*>(info.uuid), sizeof(info.uuid));
  return absl::StrCat(key_, "device ", index, ": ", FieldText(info.name), ", ",
                      FieldText(info.arch), ", ", absl::BytesToHexString(uuid), ", ",
                      FieldText(info.pci_id, sizeof(info.pci_id)), "\ndriver ",
                      FieldText(info.driver), "\n");
}

std::string PassedDevices::PathOf(const std::string& key) const {
  return absl::StrCat(folder_, "/", absl::Hex(HashOf(key), absl::kZeroPad16), ".passed");
}

// A file is the key, and how far the test came: a number, or that it is complete.
PassedDevices::Progress PassedDevices::Recall(uint32_t index, const trine_device_info& info) const {
  Progress progress;
  if (folder_.empty()) return progress;
  const std::string key = Key(index, info);
  std::error_code error;
  const std::string path = PathOf(key);
  if (!fs::is_regular_file(path, error)) return progress;
  std::string text(key.size() + 16, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (!absl::StartsWith(text, key)) return progress;
  const absl::string_view rest =
      absl::StripAsciiWhitespace(absl::string_view(text).substr(key.size()));
  progress.complete = rest == kComplete;
  int next = 0;
  if (!progress.complete && absl::SimpleAtoi(rest, &next) && next > 0) progress.next = next;
  return progress;
}

void PassedDevices::Remember(uint32_t index, const trine_device_info& info,
                             const Progress& progress) const {
  if (folder_.empty()) return;
  const std::string key = Key(index, info), path = PathOf(key);
  std::error_code error;
  fs::create_directories(folder_, error);
  // Another process may write the same file: each writes one of its own and renames it.
  std::string temporary = path + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return;
  close(fd);
  std::ofstream file(temporary, std::ios::binary);
  file << key << (progress.complete ? kComplete : absl::StrCat(progress.next)) << "\n";
  file.close();
  if (file) fs::rename(temporary, path, error);
  if (!file || error) fs::remove(temporary, error);
  KeepNewest(folder_);
}

}  // namespace trine
