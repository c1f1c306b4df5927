#include "plugins/plugin_table.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

// Far above any table that will ever be: a longer one is a lie or garbage.
constexpr uint32_t kMaxTableBytes = 4096;

std::string VersionText(uint32_t version) {
  return absl::StrCat(version >> 16, ".", version & 0xffffu);
}

std::string WhatToInstall() {
  return absl::StrCat("install a version of the plugin that was built for ABI ", TRINE_ABI_MAJOR,
                      ".x");
}

const char* SanitizerText(uint32_t sanitizer) {
  switch (sanitizer) {
    case TRINE_SANITIZER_NONE:
      return "no sanitizer";
    case TRINE_SANITIZER_ADDRESS:
      return "AddressSanitizer";
    case TRINE_SANITIZER_THREAD:
      return "ThreadSanitizer";
    default:
      return "an unknown sanitizer";
  }
}

// The first required function that is missing, or null.
const char* MissingFunction(const trine_plugin& t) {
  const struct {
    const char* name;
    bool there;
  } required[] = {
      {"open", t.open != nullptr},
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
      {"timeline_query", t.timeline_query != nullptr},
  };
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

const trine_plugin* QueryTable(trine_plugin_query_fn query) {
  const trine_plugin* table = query(TRINE_ABI_VERSION);
  constexpr uint32_t kBeforeOne = 0;  // any minor of major 0
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
  if (table.sanitizer != TRINE_SANITIZER_HERE) {
    return absl::FailedPreconditionError(
        absl::StrCat("it was built with ", SanitizerText(table.sanitizer), ", this program with ",
                     SanitizerText(TRINE_SANITIZER_HERE), ": build both alike"));
  }
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
