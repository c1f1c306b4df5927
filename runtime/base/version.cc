#include "runtime/base/version.h"

#include "absl/strings/str_cat.h"
#include "trine/backend.h"

namespace trine {

const char* Version() { return TRINE_VERSION; }

std::string AbiVersionText() { return absl::StrCat(TRINE_ABI_MAJOR, ".", TRINE_ABI_MINOR); }

std::string VersionDescription() {
  return absl::StrCat("trine ", Version(), " (plugin ABI ", AbiVersionText(), ", numerics ",
                      TRINE_NUMERICS_VERSION, ")");
}

}  // namespace trine
