// Multiplies weights of any type with the activations of many tokens, by a BLAS library's sgemm.
//
// sgemm takes floats, so weights are decoded first. Decoding all of them at once would take four
// bytes for each and a second way through memory. So a product is cut into tiles of some rows of
// the weights, and a worker decodes a part of a tile into its own room, which the processor's cache
// holds, and multiplies the part with all tokens at once.
//
// The cut depends on the sizes of the product and on the option `tile`, not on the workers. Each
// result comes from the same calls of sgemm, whichever worker makes them, so the bits of a result
// do not depend on the number of workers, although no contract says what bits sgemm gives.
#pragma once

#include <cstdint>

#include "trine/backend_sdk.h"

namespace blas {

// Limits of the option `tile`, the most rows of a tile.
inline constexpr int64_t kFewestTileRows = 16, kMostTileRows = 4096, kUsualTileRows = 256;

// A product, as MATMUL defines it: w [k,n], x [k,m], bias [n] -> y [n,m].
struct Product {
  trine::sdk::View w, x;
  const float* bias;  // null when it is absent
  trine::sdk::View y;
  int64_t tile_rows;

  int64_t Tiles() const { return (w.dims[1] + tile_rows - 1) / tile_rows; }
};

// Returns how many rows a tile has, at most `most`, for weights of `rows` rows. Makes about a
// multiple of eight tiles, of one size, so that two, four or eight workers get equal shares.
int64_t TileRows(int64_t rows, int64_t most);

// Returns how many bytes of room a worker needs for tiles of weights of this type, of `most_rows`
// rows or fewer.
uint64_t RoomBytes(uint32_t dtype, int64_t most_rows);

// Computes rows [index * tile_rows, ...) of y for all tokens. Only the calling worker uses `room`,
// which is aligned to 64 bytes.
void MultiplyTile(const Product& p, int64_t index, float* room);

}  // namespace blas
