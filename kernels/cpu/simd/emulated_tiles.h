// AMX's tiles in plain C++, so that products with tiles can be compared with the reference on any
// processor (emulated_amx_test.cc). Part of tile_instructions.h; no level that runs models has it.

#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(TRINE_EMULATED_AMX)
#error "This is for tests: a level has AMX's own instructions"
#endif

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

struct EmulatedTiles {
  TileConfig config;
  uint8_t bytes[8][16][64];
};
thread_local EmulatedTiles emulated;

TRINE_INLINE void EmulateConfigure(const TileConfig& config) {
  emulated.config = config;
  __builtin_memset(emulated.bytes, 0, sizeof(emulated.bytes));
}

TRINE_INLINE void EmulateZero(int tile) {
  __builtin_memset(emulated.bytes[tile], 0, sizeof(emulated.bytes[tile]));
}

TRINE_INLINE void EmulateLoad(int tile, const void* from, std::ptrdiff_t stride) {
  EmulateZero(tile);
  for (int row = 0; row < emulated.config.rows[tile]; ++row) {
    __builtin_memcpy(emulated.bytes[tile][row], static_cast<const uint8_t*>(from) + row * stride,
                     emulated.config.row_bytes[tile]);
  }
}

TRINE_INLINE void EmulateStore(int tile, void* to, std::ptrdiff_t stride) {
  for (int row = 0; row < emulated.config.rows[tile]; ++row) {
    __builtin_memcpy(static_cast<uint8_t*>(to) + row * stride, emulated.bytes[tile][row],
                     emulated.config.row_bytes[tile]);
  }
}

// Adds the products of all rows of tile a and all columns of tile w to tile `sum`. In tile w four
// consecutive values of a column lie side by side.
TRINE_INLINE void EmulateMultiply(int sum, int a, int w) {
  const TileConfig& config = emulated.config;
  for (int m = 0; m < config.rows[sum]; ++m) {
    int32_t sums[16];
    __builtin_memcpy(sums, emulated.bytes[sum][m], sizeof(sums));
    for (int i = 0; i < config.row_bytes[a] / 4; ++i) {
      for (int n = 0; n < config.row_bytes[sum] / 4; ++n) {
        for (int j = 0; j < 4; ++j) {
          const auto x = static_cast<int8_t>(emulated.bytes[a][m][4 * i + j]);
          sums[n] += x * static_cast<int8_t>(emulated.bytes[w][i][4 * n + j]);
        }
      }
    }
    __builtin_memcpy(emulated.bytes[sum][m], sums, sizeof(sums));
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
