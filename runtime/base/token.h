// Token ids are int32_t; kNoToken stands for no token.
#pragma once

#include <cstdint>

namespace trine {

inline constexpr int32_t kNoToken = -1;

}  // namespace trine
