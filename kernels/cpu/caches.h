// The caches of the core that a product runs on, by which it is blocked. Its result does not depend
// on them.

#ifndef TRINE_KERNELS_CPU_CACHES_H_
#define TRINE_KERNELS_CPU_CACHES_H_

#include <cstdint>

namespace trine::cpu_kernels {

// In bytes, for data; of a cache that cores share, a core's part. As they are here where they are
// not known.
struct Caches {
  int64_t first_level = 32 << 10;
  int64_t second_level = 512 << 10;
};

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_CACHES_H_
