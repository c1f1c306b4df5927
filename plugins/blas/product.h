// Multiplies weights of any type with the activations of many tokens, by a library's products.
//
// A library takes floats, so weights are decoded first. Decoding all of them at once would take
// four bytes for each and a second way through memory. So a product is cut into tiles of some rows
// of the weights, and a worker decodes a part of a tile into its own room, which the processor's
// cache holds, and multiplies the part with all tokens at once.
//
// A library may also take bf16 weights as they are. Then the activations must be bf16, too. One
// bf16 would keep 8 bits of an activation. So each becomes the sum of two, which keep 16, and the
// weights are multiplied with both. The workers split the activations together, before the tiles.
//
// The cut depends on the sizes of the product and on the option `tile`, not on the workers. Each
// result comes from the same calls of the library, whichever worker makes them, so the bits of a
// result do not depend on the number of workers, although no contract says what bits these are.
#pragma once

#include <cstdint>

#include "library.h"
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
  const Library* library;
  uint16_t* halves;  // of x, HalvesBytes; null: the weights are floats, or decoded to floats

  int64_t Tiles() const { return (w.dims[1] + tile_rows - 1) / tile_rows; }
};

// Returns how many rows a tile has, at most `most`, for weights of `rows` rows. Makes about a
// multiple of eight tiles, of one size, so that two, four or eight workers get equal shares.
int64_t TileRows(int64_t rows, int64_t most);

// Returns how many bytes of room a worker needs to decode tiles of weights of this type, of
// `most_rows` rows or fewer.
uint64_t RoomBytes(uint32_t dtype, int64_t most_rows);

// Returns how many bytes the halves of `tokens` rows of `columns` activations take.
uint64_t HalvesBytes(int64_t columns, int64_t tokens);

// Splits tokens [begin, end) of x into p.halves.
void SplitTokens(const Product& p, int64_t begin, int64_t end);

// Computes rows [index * tile_rows, ...) of y for all tokens. With halves, all tokens have been
// split. Only the calling worker uses `room`, which is aligned to 64 bytes. Returns false if the
// library has failed.
bool MultiplyTile(const Product& p, int64_t index, float* room);

}  // namespace blas
