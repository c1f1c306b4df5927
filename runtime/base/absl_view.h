// Converts std::string_view to Abseil's string_view. Debian builds Abseil with its own string_view
// class, to which std::string_view does not convert.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace trine {

inline absl::string_view AbslView(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace trine
