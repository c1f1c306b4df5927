#include "plugins/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "plugins/elf_file.h"

namespace trine {
namespace {

// Turns the text of dlerror(), which is written for linkers, into advice for the usual cases.
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

// Checks that a file named like a plugin is named after the plugin it holds; otherwise people would
// look for a plugin that is not there.
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

// Above the size of any future table; a larger size is garbage.
constexpr uint32_t kMaxTableBytes = 4096;

std::string VersionText(uint32_t version) {
  return absl::StrCat(version >> 16, ".", version & 0xffffu);
}

std::string WhatToInstall() {
  return absl::StrCat("install a version of the plugin that was built for ABI ", TRINE_ABI_MAJOR,
                      ".x");
}

const char* SanitizerText(uint32_t sanitizer) {
  return sanitizer == TRINE_SANITIZER_NONE      ? "no sanitizer"
         : sanitizer == TRINE_SANITIZER_ADDRESS ? "AddressSanitizer"
         : sanitizer == TRINE_SANITIZER_THREAD  ? "ThreadSanitizer"
                                                : "an unknown sanitizer";
}

// Returns the sanitizer whose runtime is in this process. A program without a sanitizer has one if
// the user has put the runtime in front of its libraries (LD_PRELOAD).
uint32_t SanitizerOfProcess() {
  if (TRINE_SANITIZER_HERE != TRINE_SANITIZER_NONE) return TRINE_SANITIZER_HERE;
  const auto has = [](const char* symbol) { return dlsym(RTLD_DEFAULT, symbol) != nullptr; };
  if (has("__asan_init")) return TRINE_SANITIZER_ADDRESS;
  return has("__tsan_init") ? TRINE_SANITIZER_THREAD : TRINE_SANITIZER_NONE;
}

// Checks that a plugin with this sanitizer can run in this process.
absl::Status CheckSanitizer(uint32_t sanitizer) {
  if (sanitizer == TRINE_SANITIZER_HERE || sanitizer == SanitizerOfProcess()) {
    return absl::OkStatus();
  }
  const bool preload = TRINE_SANITIZER_HERE == TRINE_SANITIZER_NONE;
  return absl::FailedPreconditionError(absl::StrCat(
      "it was built with ", SanitizerText(sanitizer), ", this program with ",
      SanitizerText(TRINE_SANITIZER_HERE), ": build both alike",
      preload ? ", or load the sanitizer's runtime first (LD_PRELOAD; docs/add-a-backend.md)"
              : ""));
}

// Returns the name of the first required function that is missing; null when none is.
const char* MissingFunction(const trine_plugin& t) {
  const struct {
    const char* name;
    bool there;
  } required[] = {{"open", t.open != nullptr},
                  {"close", t.close != nullptr},
                  {"device_count", t.device_count != nullptr},
                  {"device_info", t.device_info != nullptr},
                  {"device_open", t.device_open != nullptr},
                  {"device_close", t.device_close != nullptr},
                  {"buffer_alloc", t.buffer_alloc != nullptr},
                  {"buffer_free", t.buffer_free != nullptr},
                  {"buffer_write", t.buffer_write != nullptr},
                  {"buffer_read", t.buffer_read != nullptr},
                  {"copy_run", t.copy_run != nullptr},
                  {"op_query", t.op_query != nullptr},
                  {"plan_query", t.plan_query != nullptr},
                  {"plan_create", t.plan_create != nullptr},
                  {"plan_run", t.plan_run != nullptr},
                  {"plan_destroy", t.plan_destroy != nullptr},
                  {"timeline_create", t.timeline_create != nullptr},
                  {"timeline_destroy", t.timeline_destroy != nullptr},
                  {"timeline_signal", t.timeline_signal != nullptr},
                  {"timeline_fail", t.timeline_fail != nullptr},
                  {"timeline_wait", t.timeline_wait != nullptr},
                  {"timeline_query", t.timeline_query != nullptr}};
  for (const auto& f : required) {
    if (!f.there) return f.name;
  }
  return nullptr;
}

bool ValidName(const char* name) {
  if (name == nullptr || *name == '\0' || std::strlen(name) > 32) return false;
  return std::all_of(name, name + std::strlen(name), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

absl::Status PluginLibrary::CheckFile(const std::string& path) {
  auto facts = InspectElf(path);
  if (!facts.ok()) return facts.status();
  if (!facts->exports_query) {
    return absl::InvalidArgumentError("not a plugin: it does not export trine_plugin_query");
  }
  if (facts->wants_asan) return CheckSanitizer(TRINE_SANITIZER_ADDRESS);
  if (facts->wants_tsan) return CheckSanitizer(TRINE_SANITIZER_THREAD);
  return absl::OkStatus();
}

absl::StatusOr<trine_plugin_query_fn> PluginLibrary::LoadQuery(const std::string& path) {
  if (absl::Status status = CheckFile(path); !status.ok()) return status;
  // dlopen would search the loader's path for a name without a slash.
  const std::string file = path.find('/') == std::string::npos ? absl::StrCat("./", path) : path;
  // The library is never unmapped: drivers leave threads, exit handlers and thread-local
  // destructors that run later, and if their code were gone, they would crash far from the cause.
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
  library->query_ = *query;
  const trine_plugin* theirs = nullptr;
  try {
    theirs = QueryTable(*query);
  } catch (...) {
    return absl::InternalError("trine_plugin_query threw an exception");
  }
  auto table = AdoptTable(theirs);
  if (!table.ok()) return table.status();
  library->table_ = *table;
  if (absl::Status status = CheckName(path, table->name); !status.ok()) return status;
  return library;
}

const trine_plugin* QueryTable(trine_plugin_query_fn query) {
  const trine_plugin* table = query(TRINE_ABI_VERSION);
  constexpr uint32_t kBeforeOne = 0;  // stands for any minor of major 0
  return table != nullptr ? table : query(kBeforeOne);
}

absl::StatusOr<trine_plugin> AdoptTable(const trine_plugin* theirs) {
  if (theirs == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("it does not serve ABI ", VersionText(TRINE_ABI_VERSION),
                     ", which this program speaks: ", WhatToInstall()));
  }
  if (theirs->abi_version >> 16 != TRINE_ABI_MAJOR) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it was built for ABI ", VersionText(theirs->abi_version), ", this program speaks ",
        VersionText(TRINE_ABI_VERSION), ": ", WhatToInstall()));
  }
  if (theirs->struct_size < TRINE_PLUGIN_REQUIRED_SIZE) {
    return absl::FailedPreconditionError(
        absl::StrCat("its function table has ", theirs->struct_size, " bytes, the ABI requires ",
                     TRINE_PLUGIN_REQUIRED_SIZE, ": it was built from a broken or older header"));
  }
  if (theirs->struct_size > kMaxTableBytes || theirs->struct_size % sizeof(void*) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("its function table claims ", theirs->struct_size,
                     " bytes, which no version of the ABI has: struct_size must be sizeof"));
  }
  trine_plugin table{};
  std::memcpy(&table, theirs, std::min<size_t>(theirs->struct_size, sizeof(table)));
  if (absl::Status s = CheckSanitizer(table.sanitizer); !s.ok()) return s;
  if (!ValidName(table.name)) {
    return absl::FailedPreconditionError(
        "its name is not 1 to 32 characters out of a-z, 0-9 and -");
  }
  if (table.version == nullptr) return absl::FailedPreconditionError("it has no version text");
  if (const char* missing = MissingFunction(table)) {
    return absl::FailedPreconditionError(
        absl::StrCat("its function table lacks the required function ", missing));
  }
  return table;
}

absl::Status ToStatus(trine_status status, const trine_error& err, const std::string& what) {
  if (status == TRINE_OK) return absl::OkStatus();
  const auto code = status > TRINE_OK && status <= TRINE_DATA_LOSS
                        ? static_cast<absl::StatusCode>(status)
                        : absl::StatusCode::kUnknown;
  const size_t length = strnlen(err.message, sizeof(err.message));
  return absl::Status(
      code, length == 0 ? absl::StrCat(what, ": failed with status ", status, " and no message")
                        : absl::StrCat(what, ": ", absl::string_view(err.message, length)));
}

}  // namespace trine
