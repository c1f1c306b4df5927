// The versions a user or a bug report needs to name.
#ifndef TRINE_RUNTIME_VERSION_H_
#define TRINE_RUNTIME_VERSION_H_

#include <string>

namespace trine {

const char* Version();             // "0.1.0"
std::string AbiVersionText();      // "1.0"
std::string VersionDescription();  // "trine 0.1.0 (plugin ABI 1.0, numerics 1)"

}  // namespace trine

#endif  // TRINE_RUNTIME_VERSION_H_
