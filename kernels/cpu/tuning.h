// What a product is told of how to go about its work. Its result does not depend on it.

#ifndef TRINE_KERNELS_CPU_TUNING_H_
#define TRINE_KERNELS_CPU_TUNING_H_

#include <cstdint>

namespace trine::cpu_kernels {

// Those of a core that products run on, in bytes, for data; of a cache that cores share, a core's
// part. The sizes here are a guess, for where they are not known.
struct Caches {
  int64_t first_level = 32 << 10;
  int64_t second_level = 512 << 10;
};

// How weights meet several columns.
enum class Way : uint8_t {
  kUsual,   // one of the others, by how many columns there are
  kDirect,  // unpacked or converted where they are multiplied, once for every few columns
  kTiles,   // unpacked or converted into a tile, once for all
};

struct Tuning {
  Caches caches;
  Way way = Way::kUsual;
};

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_TUNING_H_
