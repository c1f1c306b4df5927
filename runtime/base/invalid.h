// Makes the status for bad input, with a message of several parts.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace trine {

// Returns INVALID_ARGUMENT. Takes what absl::StrCat takes.
template <class... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

}  // namespace trine
