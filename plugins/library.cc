#include "plugins/library.h"

#include <dlfcn.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "plugins/elf_file.h"
#include "plugins/plugin_table.h"

namespace trine {
namespace {

// dlerror() speaks for linkers; say what a person can do about the usual cases.
std::string ExplainLoadError(const char* text) {
  const std::string error = text != nullptr ? text : "unknown error";
  constexpr absl::string_view kMissing = ": cannot open shared object file";
  const size_t at = error.find(std::string(kMissing));
  if (at != std::string::npos && absl::StrContains(error, ".so")) {
    const std::string library = error.substr(0, at);
    if (library.find('/') == std::string::npos) {
      return absl::StrCat("missing library: it needs ", library,
                          ", which is not installed or not on the loader's path");
    }
  }
  if (absl::StrContains(error, "undefined symbol")) {
    return absl::StrCat("it does not fit the libraries installed here: ", error);
  }
  return absl::StrCat("cannot be loaded: ", error);
}

// A file that is named like a plugin is named after the one it holds, or people look for the wrong
// one in vain.
absl::Status CheckName(const std::string& path, const std::string& name) {
  absl::string_view file = path;
  file.remove_prefix(file.rfind('/') == absl::string_view::npos ? 0 : file.rfind('/') + 1);
  if (!absl::ConsumePrefix(&file, "libtrine-backend-") || !absl::ConsumeSuffix(&file, ".so") ||
      file == name) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("its file is called ", file, ", but it calls itself ", name,
                   ": rename the file to libtrine-backend-", name, ".so"));
}

}  // namespace

absl::Status PluginLibrary::CheckFile(const std::string& path) {
  auto facts = InspectElf(path);
  if (!facts.ok()) return facts.status();
  if (!facts->exports_query) {
    return absl::InvalidArgumentError("not a plugin: it does not export trine_plugin_query");
  }
  const bool asan_here = TRINE_SANITIZER_HERE == TRINE_SANITIZER_ADDRESS;
  const bool tsan_here = TRINE_SANITIZER_HERE == TRINE_SANITIZER_THREAD;
  if ((facts->wants_asan && !asan_here) || (facts->wants_tsan && !tsan_here)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it was built with ", facts->wants_asan ? "AddressSanitizer" : "ThreadSanitizer",
        ", this program was not: build both alike"));
  }
  return absl::OkStatus();
}

absl::StatusOr<trine_plugin_query_fn> PluginLibrary::LoadQuery(const std::string& path) {
  if (absl::Status status = CheckFile(path); !status.ok()) return status;
  // A path without a slash would be searched for on the loader's own path.
  const std::string file = path.find('/') == std::string::npos ? absl::StrCat("./", path) : path;
  // Never unmapped: drivers leave threads, exit handlers and thread-local destructors behind, and
  // code that is gone by the time they run is a crash far from its cause.
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return absl::FailedPreconditionError(ExplainLoadError(dlerror()));
  const auto query = reinterpret_cast<trine_plugin_query_fn>(dlsym(handle, "trine_plugin_query"));
  if (query == nullptr) {
    return absl::InvalidArgumentError("not a plugin: it does not export trine_plugin_query");
  }
  return query;
}

absl::StatusOr<std::unique_ptr<PluginLibrary>> PluginLibrary::Load(const std::string& path) {
  const auto query = LoadQuery(path);
  if (!query.ok()) return query.status();
  std::unique_ptr<PluginLibrary> library(new PluginLibrary());
  library->path_ = path;
  library->query_ = *query;
  try {
    library->raw_ = QueryTable(library->query_);
  } catch (...) {
    return absl::InternalError("trine_plugin_query threw an exception");
  }
  auto table = AdoptTable(library->raw_);
  if (!table.ok()) return table.status();
  library->table_ = *table;
  if (absl::Status status = CheckName(path, table->name); !status.ok()) return status;
  return library;
}

}  // namespace trine
