// The codes of failures that tests of the C API expect; trine.h has all of them.
#pragma once

#include <cstdint>

namespace trine {

enum : int32_t {
  kCancelled = 1,
  kInvalidArgument = 3,
  kNotFound = 5,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnavailable = 14,
};

}  // namespace trine
