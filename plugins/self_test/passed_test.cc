#include "plugins/self_test/passed_test.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "plugins/device_text.h"

namespace trine {
namespace {

namespace fs = std::filesystem;

// Must change when the self-test's graphs change.
constexpr char kTest[] = "self-test 1";

// Hashes text. The library does not promise the same hash to another version of itself: then a
// device is tested once more.
uint64_t HashOf(const std::string& text) { return std::hash<std::string_view>()(text); }

std::optional<std::string> ReadFile(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) return std::nullopt;
  return text;
}

// Returns the folder for such files, or "" if the user has none.
std::string Folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr && value[0] == '/' ? value : "");
  };
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) {
    return cache + "/trine/self-test";
  }
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/trine/self-test";
}

}  // namespace

PassedTest::PassedTest(const std::string& plugin_path, const std::string& options,
                       const char* plugin, uint32_t index, const trine_device_info& info) {
  const std::string folder = Folder();
  const auto file = ReadFile(plugin_path);
  if (folder.empty() || !file) return;
  text_ = absl::StrCat(kTest, "\nnumerics ", TRINE_NUMERICS_VERSION, "\nplugin ", plugin, ", ",
                       file->size(), " bytes, ", absl::Hex(HashOf(*file)), "\noptions ", options,
                       "\ndevice ", index, ": ", FieldText(info.name), ", ", FieldText(info.arch),
                       "\ndriver ", FieldText(info.driver), "\n");
  path_ = absl::StrCat(folder, "/", absl::Hex(HashOf(text_), absl::kZeroPad16), ".passed");
}

bool PassedTest::Recall() const {
  const auto text = ReadFile(path_);
  return text && *text == text_;
}

void PassedTest::Remember() const {
  if (path_.empty()) return;
  std::error_code error;
  fs::create_directories(fs::path(path_).parent_path(), error);
  // Another process may write the same file: each writes one of its own and renames it.
  const std::string temporary = absl::StrCat(path_, ".", getpid());
  std::ofstream(temporary, std::ios::binary) << text_;
  fs::rename(temporary, path_, error);
  if (error) fs::remove(temporary, error);
}

}  // namespace trine
