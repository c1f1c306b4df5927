// The versions that a user or a bug report needs to name.
#pragma once

#include <string>

namespace trine {

const char* Version();             // "0.1.0"
std::string AbiVersionText();      // "1.0"
std::string VersionDescription();  // "trine 0.1.0 (plugin ABI 1.0, numerics 1)"

}  // namespace trine
