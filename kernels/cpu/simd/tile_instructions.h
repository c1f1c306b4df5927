// AMX's instructions as the products use them. Tiles 0 to 3 hold sums, with a column in each row;
// tiles 4 and 5 hold activations, tiles 6 and 7 weights.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/int8_dot.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

// These are macros, because GCC wants the tiles' numbers as literals.
#if defined(__AMX_INT8__)
#include <immintrin.h>
#define TRINE_TILE_CONFIGURE(config) _tile_loadconfig(config)
#define TRINE_TILE_RELEASE() _tile_release()
#define TRINE_TILE_LOAD(tile, from, stride) _tile_loadd(tile, from, stride)
#define TRINE_TILE_STORE(tile, to, stride) _tile_stored(tile, to, stride)
#define TRINE_TILE_ZERO(tile) _tile_zero(tile)
#define TRINE_TILE_MULTIPLY(sum, a, w) _tile_dpbssd(sum, a, w)
#else
#include "kernels/cpu/simd/emulated_tiles.h"
#define TRINE_TILE_CONFIGURE(config) EmulateConfigure(*(config))
#define TRINE_TILE_RELEASE() EmulateConfigure({})
#define TRINE_TILE_LOAD(tile, from, stride) EmulateLoad(tile, from, stride)
#define TRINE_TILE_STORE(tile, to, stride) EmulateStore(tile, to, stride)
#define TRINE_TILE_ZERO(tile) EmulateZero(tile)
#define TRINE_TILE_MULTIPLY(sum, a, w) EmulateMultiply(sum, a, w)
#endif

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

constexpr int kTileColumns = 16;

// Configures the tiles for products of 16 columns by 16 rows by `values` values.
TRINE_INLINE void ConfigureTiles(int values) {
  TileConfig config = {};
  config.palette = 1;
  const auto set = [&](int tile, int rows, int row_bytes) {
    config.rows[tile] = static_cast<uint8_t>(rows);
    config.row_bytes[tile] = static_cast<uint16_t>(row_bytes);
  };
  for (int tile = 0; tile < 4; ++tile) set(tile, kTileColumns, 4 * kTileRows);
  for (int tile = 4; tile < 6; ++tile) set(tile, kTileColumns, values);
  for (int tile = 6; tile < 8; ++tile) set(tile, values / 4, 4 * kTileRows);
  // GCC before 12.4 assumes that the instruction reads only eight bytes of the struct, and drops
  // the stores to the others.
  asm volatile("" ::: "memory");
  TRINE_TILE_CONFIGURE(&config);
}

TRINE_INLINE void ReleaseTiles() { TRINE_TILE_RELEASE(); }

// Do the steps of product number kProduct. Consecutive products use different tiles, so that they
// can be under way at the same time.
template <int kProduct>
TRINE_INLINE void LoadActivations(const int8_t* from, std::ptrdiff_t stride) {
  if constexpr (kProduct % 2 == 0) TRINE_TILE_LOAD(4, from, stride);
  if constexpr (kProduct % 2 == 1) TRINE_TILE_LOAD(5, from, stride);
}

template <int kProduct>
TRINE_INLINE void LoadWeights(const uint8_t* from) {
  constexpr std::ptrdiff_t kStride = 4 * kTileRows;
  if constexpr (kProduct % 2 == 0) TRINE_TILE_LOAD(6, from, kStride);
  if constexpr (kProduct % 2 == 1) TRINE_TILE_LOAD(7, from, kStride);
}

template <int kProduct>
TRINE_INLINE void MultiplyTiles() {
#define TRINE_MULTIPLY(sum, a, w)   \
  {                                 \
    TRINE_TILE_ZERO(sum);           \
    TRINE_TILE_MULTIPLY(sum, a, w); \
  }
  if constexpr (kProduct % 4 == 0) TRINE_MULTIPLY(0, 4, 6);
  if constexpr (kProduct % 4 == 1) TRINE_MULTIPLY(1, 5, 7);
  if constexpr (kProduct % 4 == 2) TRINE_MULTIPLY(2, 4, 6);
  if constexpr (kProduct % 4 == 3) TRINE_MULTIPLY(3, 5, 7);
#undef TRINE_MULTIPLY
}

using TileProducts = int32_t[kTileColumns][kTileRows];

template <int kProduct>
TRINE_INLINE void StoreProducts(TileProducts& to) {
  constexpr std::ptrdiff_t kStride = sizeof(to[0]);
  if constexpr (kProduct % 4 == 0) TRINE_TILE_STORE(0, to, kStride);
  if constexpr (kProduct % 4 == 1) TRINE_TILE_STORE(1, to, kStride);
  if constexpr (kProduct % 4 == 2) TRINE_TILE_STORE(2, to, kStride);
  if constexpr (kProduct % 4 == 3) TRINE_TILE_STORE(3, to, kStride);
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#undef TRINE_TILE_CONFIGURE
#undef TRINE_TILE_RELEASE
#undef TRINE_TILE_LOAD
#undef TRINE_TILE_STORE
#undef TRINE_TILE_ZERO
#undef TRINE_TILE_MULTIPLY
