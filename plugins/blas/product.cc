#include "product.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sdk = trine::sdk;
using sdk::View;

namespace blas {
namespace {

// The columns of a tile that are decoded at a time, a multiple of every block.
constexpr int64_t kDepth = 1024;
// The floats from one decoded row to the next. Rows whose distance is a power of two would share
// few sets of the first cache, and a product reads several rows side by side.
constexpr int64_t kRoomStride = kDepth + 16;

// A matrix as a library takes it.
struct Matrix {
  const float* data;
  int64_t stride;  // floats from one row to the next
};

template <class T>
int64_t StrideOf(const View& v) {
  return std::max<int64_t>(v.strides[1] / int64_t{sizeof(T)}, 1);
}

// The part of a product that one call of the library computes.
struct Part {
  int64_t row, rows;      // of the weights
  int64_t column, depth;  // of the weights and of x
};

// Returns the part's weights as floats: where they are, or decoded into the room.
Matrix DecodedWeights(const View& w, const Part& part, float* room) {
  if (w.dtype == TRINE_DTYPE_F32) {
    return {w.RowAs<float>(part.row) + part.column, StrideOf<float>(w)};
  }
  const int64_t skipped = sdk::ValueBytes(w.dtype, part.column);
  for (int64_t r = 0; r < part.rows; ++r) {
    sdk::DequantizeRow(w.dtype, w.Row(part.row + r) + skipped, part.depth, room + r * kRoomStride);
  }
  return {room, kRoomStride};
}

// Adds the product of the part to y.
bool AddPart(const Product& p, const Part& part, float* room) {
  const Matrix w = DecodedWeights(p.w, part, room);
  return p.library->Add(Operands<float>{part.rows, p.x.dims[1], part.depth, w.data, w.stride,
                                        p.x.RowAs<float>(0) + part.column, StrideOf<float>(p.x),
                                        p.y.RowAs<float>(0) + part.row, StrideOf<float>(p.y)});
}

// Adds the products of rows of float weights, of any type, to y.
bool AddFloats(const Product& p, int64_t row, int64_t rows, float* room) {
  const int64_t columns = p.w.dims[0];
  for (int64_t column = 0; column < columns; column += kDepth) {
    if (!AddPart(p, {row, rows, column, std::min(kDepth, columns - column)}, room)) return false;
  }
  return true;
}

// ---- Halves: rows of high ones, then as many rows of low ones -----------------------------------

// Returns the bf16 from one row of halves to the next: whole lines of the cache.
int64_t HalvesStride(int64_t columns) { return (columns + 31) / 32 * 32; }

uint16_t NearestBf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Adds the products of rows of bf16 weights with both halves of x to y.
bool AddBf16(const Product& p, int64_t row, int64_t rows) {
  const int64_t tokens = p.x.dims[1], stride = HalvesStride(p.w.dims[0]);
  Operands<uint16_t> product{rows,
                             tokens,
                             p.w.dims[0],
                             p.w.RowAs<uint16_t>(row),
                             StrideOf<uint16_t>(p.w),
                             p.halves,
                             stride,
                             p.y.RowAs<float>(0) + row,
                             StrideOf<float>(p.y)};
  if (!p.library->Add(product)) return false;
  product.x += tokens * stride;
  return p.library->Add(product);
}

// Brings a result into the range that ops may exchange: +0, or a magnitude of 2^-50 to 2^50. Fast
// results need that too, because an exact device may go on with them.
float Canon(float x) {
  const float clamped = std::min(std::max(x, -0x1p50f), 0x1p50f);
  return std::fabs(x) >= 0x1p-50f ? clamped : 0.0f;  // +0 also when x is NaN
}

}  // namespace

int64_t TileRows(int64_t rows, int64_t most) {
  const int64_t round = 8 * most;
  const int64_t tiles = std::max<int64_t>(8 * ((rows + round - 1) / round), 1);
  const int64_t even = (rows + tiles - 1) / tiles;
  return std::clamp((even + 15) / 16 * 16, kFewestTileRows, most);
}

uint64_t RoomBytes(uint32_t dtype, int64_t most_rows) {
  if (dtype == TRINE_DTYPE_F32) return 0;
  return static_cast<uint64_t>(most_rows * kRoomStride) * sizeof(float);
}

uint64_t HalvesBytes(int64_t columns, int64_t tokens) {
  return static_cast<uint64_t>(2 * tokens * HalvesStride(columns)) * sizeof(uint16_t);
}

void SplitTokens(const Product& p, int64_t begin, int64_t end) {
  const int64_t columns = p.w.dims[0], stride = HalvesStride(columns);
  for (int64_t t = begin; t < end; ++t) {
    const float* x = p.x.RowAs<float>(t);
    uint16_t* high = p.halves + t * stride;
    uint16_t* low = high + p.x.dims[1] * stride;
    for (int64_t i = 0; i < columns; ++i) {
      high[i] = NearestBf16(x[i]);
      low[i] = NearestBf16(x[i] - std::bit_cast<float>(uint32_t{high[i]} << 16));
    }
  }
}

bool MultiplyTile(const Product& p, int64_t index, float* room) {
  const int64_t row = index * p.tile_rows, rows = std::min(p.tile_rows, p.w.dims[1] - row);
  const int64_t tokens = p.x.dims[1];
  if (tokens == 0) return true;
  for (int64_t t = 0; t < tokens; ++t) {
    float* y = p.y.RowAs<float>(t) + row;
    p.bias != nullptr ? std::copy_n(p.bias + row, rows, y) : std::fill_n(y, rows, 0.0f);
  }
  const bool done = p.halves != nullptr ? AddBf16(p, row, rows) : AddFloats(p, row, rows, room);
  for (int64_t t = 0; t < tokens; ++t) {
    float* y = p.y.RowAs<float>(t) + row;
    std::transform(y, y + rows, y, Canon);
  }
  return done;
}

}  // namespace blas
