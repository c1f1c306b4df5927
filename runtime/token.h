// Token ids are int32_t; this one is none.
#ifndef TRINE_RUNTIME_TOKEN_H_
#define TRINE_RUNTIME_TOKEN_H_

#include <cstdint>

namespace trine {

inline constexpr int32_t kNoToken = -1;

}  // namespace trine

#endif  // TRINE_RUNTIME_TOKEN_H_
