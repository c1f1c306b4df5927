#include "plugins/search_path.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace trine {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPrefix = "libtrine-backend-";
constexpr absl::string_view kSuffix = ".so";
constexpr char kBesideProgram[] = "beside the program";
constexpr absl::string_view kOwnPlugins[] = {"cpu", "hip", "vulkan"};

bool HasNameOfOwnPlugin(const std::string& path) {
  const std::string file = fs::path(path).filename().string();
  return std::any_of(std::begin(kOwnPlugins), std::end(kOwnPlugins), [&](absl::string_view name) {
    return file == absl::StrCat(kPrefix, name, kSuffix);
  });
}

// Returns the folder of the running program, or "" if it is not known.
fs::path ProgramFolder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : program.parent_path();
}

// Returns the folder of the shared object that this code was linked into: libtrine.so in a program
// that embeds it. Returns "" for a name that is not absolute: for code in the program itself, the
// loader gives the caller's argv[0], and resolving that would look into the current folder.
fs::path LibraryFolder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&FindPlugins), &info) == 0 ||
      info.dli_fname == nullptr || info.dli_fname[0] != '/') {
    return {};
  }
  std::error_code error;
  const fs::path resolved = fs::canonical(info.dli_fname, error);
  return error ? fs::path() : resolved.parent_path();
}

// Returns the program's and the library's folder, each once.
std::vector<SearchedFolder> OwnFolders() {
  std::vector<SearchedFolder> folders;
  const fs::path program = ProgramFolder(), library = LibraryFolder();
  if (!program.empty()) folders.push_back({program.string(), kBesideProgram, false, ""});
  if (!library.empty() && library != program) {
    folders.push_back({library.string(), "beside libtrine.so", false, ""});
  }
  return folders;
}

bool IsDirectory(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::vector<std::string> PluginFiles(const std::string& folder, std::string* problem) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (absl::StartsWith(name, kPrefix) && absl::EndsWith(name, kSuffix)) {
      files.push_back(it->path().string());
    }
  }
  if (error) *problem = error.message();
  std::sort(files.begin(), files.end());
  return files;
}

class Search {
 public:
  // Adds a file or a folder that a person or the environment named.
  void Named(const std::string& path, const std::string& found_by) {
    if (path.empty()) return;
    if (IsDirectory(path)) return Folder({path, found_by, true, ""});
    AddFile({path, found_by, true});
  }
  // `own`: Trine's own plugins are in the folder.
  void Folder(SearchedFolder folder, bool own = false) {
    folder.exists = IsDirectory(folder.path);
    std::vector<std::string> files;
    if (folder.exists) files = PluginFiles(folder.path, &folder.error);
    folder.plugins = files.size();
    result_.folders.push_back(folder);
    for (const std::string& file : files) {
      AddFile({file, folder.found_by, false, own && HasNameOfOwnPlugin(file)});
    }
  }
  SearchResult Take() { return std::move(result_); }

 private:
  void AddFile(Candidate candidate) {
    std::error_code error;
    const fs::path canonical = fs::weakly_canonical(candidate.path, error);
    const auto [known, is_new] =
        seen_.emplace(error ? candidate.path : canonical.string(), result_.candidates.size());
    if (is_new) {
      result_.candidates.push_back(std::move(candidate));
    } else {
      result_.candidates[known->second].named |= candidate.named;
      result_.candidates[known->second].own |= candidate.own;
    }
  }

  SearchResult result_;
  std::map<std::string, size_t> seen_;  // canonical path -> index of the candidate
};

}  // namespace

SearchResult FindPlugins(const SearchOptions& options) {
  Search search;
  for (const std::string& path : options.explicit_paths) search.Named(path, "named by the user");
  const char* environment = options.use_environment ? std::getenv("TRINE_PLUGIN_PATH") : nullptr;
  if (environment != nullptr) {
    for (absl::string_view part : absl::StrSplit(environment, ':')) {
      // An empty or relative path would depend on the current folder.
      if (!absl::StartsWith(part, "/")) continue;
      search.Named(std::string(part), "TRINE_PLUGIN_PATH");
    }
  }
  if (options.use_default_folders) {
    const std::vector<SearchedFolder> own = OwnFolders();
    for (const SearchedFolder& folder : own) search.Folder(folder, /*own=*/true);
    // An installed program in PREFIX/bin has its plugins in PREFIX/lib/trine/plugins, and
    // libtrine.so is in PREFIX/lib. TRINE_LIBDIR is lib, or lib/<triplet> on Debian.
    std::set<std::string> done;
    for (const SearchedFolder& folder : own) {
      const fs::path base(folder.path);
      const fs::path path = folder.found_by == kBesideProgram
                                ? base.parent_path() / TRINE_LIBDIR / "trine/plugins"
                                : base / "trine/plugins";
      const std::string text = path.lexically_normal().string();
      if (done.insert(text).second) search.Folder({text, "installed", false, ""}, /*own=*/true);
    }
  }
  return search.Take();
}

std::string FindProbeProgram(std::vector<std::string>* looked_at) {
  std::vector<std::string> places;
  if (const char* named = std::getenv("TRINE_PROBE"); named != nullptr && *named != '\0') {
    if (named[0] != '/') {  // would depend on the current folder
      if (looked_at != nullptr) *looked_at = {absl::StrCat(named, " (not an absolute path)")};
      return "";
    }
    places.push_back(named);
  } else {
    for (const SearchedFolder& folder : OwnFolders()) {
      const fs::path base(folder.path);
      places.push_back((base / "trine-probe").string());
      places.push_back((base.parent_path() / TRINE_LIBEXECDIR / "trine/trine-probe").string());
      places.push_back(
          (base.parent_path().parent_path() / TRINE_LIBEXECDIR / "trine/trine-probe").string());
    }
  }
  for (const std::string& place : places) {
    if (access(place.c_str(), X_OK) == 0 && !IsDirectory(place)) return place;
  }
  if (looked_at != nullptr) *looked_at = places;
  return "";
}

}  // namespace trine
