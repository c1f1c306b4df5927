// Implements CopyLaunch of ops.h.
#include <algorithm>
#include <type_traits>

#include "kernels/hip/gpu/device.h"
#include "kernels/hip/ops/ops.h"
#include "kernels/hip/ops/row_index.h"
#include "kernels/hip/ops/walk.h"

namespace trine::hip {
namespace {

using quant::Type;

constexpr int kThreads = 256;

struct CopyArgs {
  Walk walk;
  Rows from, to;
};

// f16 and bf16 as separate types, for overloads.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

TRINE_DEVICE float ToFloat(float v) { return v; }
// Does not use HalfToFloat, whose instruction may turn a NaN into another.
TRINE_DEVICE float ToFloat(Half v) { return quant::F16ToF32(v.bits); }
TRINE_DEVICE float ToFloat(Brain v) { return quant::Bf16ToF32(v.bits); }
TRINE_DEVICE void Store(float v, float* to) { *to = Canon(v); }
TRINE_DEVICE void Store(float v, Half* to) { to->bits = quant::F32ToF16Saturated(v); }
TRINE_DEVICE void Store(float v, Brain* to) { to->bits = quant::F32ToBf16(v); }

// Copies bytes if the types are equal, else converts values.
template <class From, class To>
TRINE_KERNEL(kThreads)
CopyKernel(CopyArgs args) {
  BeginAfterEarlier();
  const uint32_t along = BlockSizeX(), across = kThreads / along;
  const int64_t row_step = static_cast<int64_t>(GridY()) * across;
  const int64_t unit_step = static_cast<int64_t>(GridX()) * along;
  for (int64_t row = static_cast<int64_t>(BlockY()) * across + ThreadY(); row < args.walk.rows;
       row += row_step) {
    const RowIndex index = IndexOfRow(row, args.walk.n1, args.walk.n2);
    const From* from = RowAt<const From>(args.from, index);
    To* to = RowAt<To>(args.to, index);
    for (int64_t i = static_cast<int64_t>(BlockX()) * along + ThreadX(); i < args.walk.units;
         i += unit_step) {
      if constexpr (std::is_same_v<From, To>) {
        to[i] = from[i];
      } else {
        Store(ToFloat(from[i]), to + i);
      }
    }
  }
}

template <class From, class To>
Launch Make(const Tensor& src, const Tensor& dst, const std::array<int64_t, 4>& dims) {
  Tensor from = src, to = dst;
  std::array<int64_t, 4> flat = dims;
  Flatten(&flat, {{&from, sizeof(From)}, {&to, sizeof(To)}});
  CopyArgs args;
  args.walk = WalkOf(flat, 1);
  args.from = RowsOf(from);
  args.to = RowsOf(to);
  const WalkShape shape = ShapeOf(args.walk, kThreads);
  return MakeLaunch(CopyKernel<From, To>, shape.grid, shape.block, args);
}

// Moves bytes in the largest units that the rows allow.
Launch MoveBytes(Tensor src, Tensor dst) {
  for (size_t i = 1; i < 4; ++i) {
    if (src.dims[i] == 1) src.strides[i] = dst.strides[i] = 0;  // such strides mean nothing
  }
  const quant::TypeTraits traits = quant::Traits(src.type);
  const int64_t row_bytes = src.dims[0] / traits.block_values * traits.block_bytes;
  std::array<int64_t, 4> dims = src.dims;
  const auto fits = [&](int64_t unit) {
    dims[0] = row_bytes / unit;
    return row_bytes % unit == 0 && RowsAligned(src, unit) && RowsAligned(dst, unit);
  };
  if (fits(16)) return Make<Word4, Word4>(src, dst, dims);
  if (fits(4)) return Make<uint32_t, uint32_t>(src, dst, dims);
  if (fits(2)) return Make<uint16_t, uint16_t>(src, dst, dims);
  dims[0] = row_bytes;
  return Make<uint8_t, uint8_t>(src, dst, dims);
}

constexpr uint32_t kPieceThreads = 256;
constexpr uint32_t kBlockBytes = kPieceThreads * 16;

struct CopyPiecesArgs {
  Piece pieces[kMostPieces];
};

// Each piece has a row of blocks.
TRINE_KERNEL(kPieceThreads) CopyPiecesKernel(CopyPiecesArgs args) {
  BeginAfterEarlier();
  const auto of = [&](const auto& field) {
    return PickArgument<kMostPieces>(BlockY(), [&](uint32_t i) { return field(args.pieces[i]); });
  };
  const Piece piece = {of([](const Piece& p) { return p.to; }),
                       of([](const Piece& p) { return p.from; }),
                       of([](const Piece& p) { return p.bytes; })};
  const uint64_t begin = uint64_t{BlockX()} * kBlockBytes;
  if (begin >= piece.bytes) return;
  const uint64_t bytes = piece.bytes - begin < kBlockBytes ? piece.bytes - begin : kBlockBytes;
  const auto whole = [&](uint64_t unit) {
    return (reinterpret_cast<uintptr_t>(piece.to) | reinterpret_cast<uintptr_t>(piece.from) |
            bytes) %
               unit ==
           0;
  };
  if (whole(16)) {
    const auto* from = reinterpret_cast<const Word4*>(piece.from + begin);
    auto* to = reinterpret_cast<Word4*>(piece.to + begin);
    if (ThreadX() < bytes / 16) to[ThreadX()] = from[ThreadX()];
  } else if (whole(4)) {
    const auto* from = reinterpret_cast<const uint32_t*>(piece.from + begin);
    auto* to = reinterpret_cast<uint32_t*>(piece.to + begin);
    for (uint32_t i = ThreadX(); i < bytes / 4; i += kPieceThreads) to[i] = from[i];
  } else {
    for (uint32_t i = ThreadX(); i < bytes; i += kPieceThreads) {
      piece.to[begin + i] = piece.from[begin + i];
    }
  }
}

}  // namespace

Launch CopyLaunch(const Tensor& src, const Tensor& dst) {
  if (src.type == dst.type) return MoveBytes(src, dst);
  const std::array<int64_t, 4>& dims = src.dims;
  if (src.type == Type::kF32) {
    return dst.type == Type::kF16 ? Make<float, Half>(src, dst, dims)
                                  : Make<float, Brain>(src, dst, dims);
  }
  if (src.type == Type::kF16) {
    return dst.type == Type::kF32 ? Make<Half, float>(src, dst, dims)
                                  : Make<Half, Brain>(src, dst, dims);
  }
  return dst.type == Type::kF32 ? Make<Brain, float>(src, dst, dims)
                                : Make<Brain, Half>(src, dst, dims);
}

Launch CopyPiecesLaunch(std::span<const Piece> pieces) {
  CopyPiecesArgs args;
  uint64_t most = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    args.pieces[i] = pieces[i];
    most = std::max(most, pieces[i].bytes);
  }
  const auto blocks = static_cast<uint32_t>((most + kBlockBytes - 1) / kBlockBytes);
  return MakeLaunch(CopyPiecesKernel, {blocks, static_cast<uint32_t>(pieces.size())},
                    {kPieceThreads}, args);
}

}  // namespace trine::hip
