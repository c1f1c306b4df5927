#include "product.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>

namespace sdk = trine::sdk;
using sdk::View;

namespace blas {
namespace {

// The columns of a tile that are decoded at a time, a multiple of every block.
constexpr int64_t kDepth = 1024;
// The floats from one decoded row to the next. Rows whose distance is a power of two would share
// few sets of the first cache, and sgemm reads several rows side by side.
constexpr int64_t kRoomStride = kDepth + 16;

// A matrix as BLAS takes it.
struct Matrix {
  const float* data;
  int stride;  // floats from one row to the next
};

int StrideOf(const View& v) {
  return static_cast<int>(std::max<int64_t>(v.strides[1] / int64_t{sizeof(float)}, 1));
}

// The part of a product that one call of sgemm computes.
struct Part {
  int64_t row, rows;      // of the weights
  int64_t column, depth;  // of the weights and of x
};

// Returns the part's weights as floats: where they are, or decoded into the room.
Matrix DecodedWeights(const View& w, const Part& part, float* room) {
  if (w.dtype == TRINE_DTYPE_F32) return {w.RowAs<float>(part.row) + part.column, StrideOf(w)};
  const int64_t skipped = sdk::ValueBytes(w.dtype, part.column);
  for (int64_t r = 0; r < part.rows; ++r) {
    sdk::DequantizeRow(w.dtype, w.Row(part.row + r) + skipped, part.depth, room + r * kRoomStride);
  }
  return {room, static_cast<int>(kRoomStride)};
}

// Adds the product of the part to y.
void AddPart(const Product& p, const Part& part, float* room) {
  const Matrix w = DecodedWeights(p.w, part, room);
  // A row of a tensor is a column to BLAS, which counts the other way: y = transposed(w) * x + y.
  cblas_sgemm(CblasColMajor, CblasTrans, CblasNoTrans, static_cast<int>(part.rows),
              static_cast<int>(p.x.dims[1]), static_cast<int>(part.depth), 1.0f, w.data, w.stride,
              p.x.RowAs<float>(0) + part.column, StrideOf(p.x), 1.0f,
              p.y.RowAs<float>(0) + part.row, StrideOf(p.y));
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

void MultiplyTile(const Product& p, int64_t index, float* room) {
  const int64_t row = index * p.tile_rows, rows = std::min(p.tile_rows, p.w.dims[1] - row);
  const int64_t tokens = p.x.dims[1], columns = p.w.dims[0];
  for (int64_t t = 0; t < tokens; ++t) {
    float* y = p.y.RowAs<float>(t) + row;
    p.bias != nullptr ? std::copy_n(p.bias + row, rows, y) : std::fill_n(y, rows, 0.0f);
  }
  for (int64_t column = 0; tokens != 0 && column < columns; column += kDepth) {
    AddPart(p, {row, rows, column, std::min(kDepth, columns - column)}, room);
  }
  for (int64_t t = 0; t < tokens; ++t) {
    float* y = p.y.RowAs<float>(t) + row;
    std::transform(y, y + rows, y, Canon);
  }
}

}  // namespace blas
