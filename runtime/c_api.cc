// The C API over the C++ runtime: nothing thrown here reaches the caller.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "absl/strings/str_split.h"
#include "runtime/c_api_support.h"
#include "runtime/machine_report.h"
#include "runtime/version.h"
#include "trine/backend.h"
#include "trine/trine.h"

namespace {

char* CopyText(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace

extern "C" {

const char* trine_version(void) { return trine::Version(); }
uint32_t trine_backend_abi_version(void) { return TRINE_ABI_VERSION; }
uint32_t trine_numerics_version(void) { return TRINE_NUMERICS_VERSION; }

int32_t trine_detect(const trine_detect_options* given, char** json) {
  if (json == nullptr) return TRINE_INVALID_ARGUMENT;
  *json = nullptr;
  try {
    trine_detect_options options{};
    if (!trine::c_api::ReadStruct("options", given, &options).ok()) return TRINE_INVALID_ARGUMENT;
    trine::MachineOptions machine;
    if (options.root != nullptr) machine.root = options.root;
    if (options.plugins != nullptr) {
      for (absl::string_view path : absl::StrSplit(options.plugins, ':', absl::SkipEmpty())) {
        machine.registry.search.explicit_paths.emplace_back(path);
      }
    }
    *json = CopyText(trine::MachineReportText(trine::DescribeMachine(machine)));
    return TRINE_OK;
  } catch (const std::bad_alloc&) {
    return TRINE_RESOURCE_EXHAUSTED;
  } catch (...) {
    return TRINE_INTERNAL;
  }
}

void trine_string_free(char* text) { std::free(text); }

}  // extern "C"
