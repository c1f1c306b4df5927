// CopyLaunch of elementwise.h.
#include <type_traits>

#include "kernels/hip/elementwise.h"
#include "kernels/hip/row_index.h"
#include "kernels/hip/walk.h"

namespace trine::hip {
namespace {

using quant::Type;

constexpr int kThreads = 256;

struct CopyArgs {
  Walk walk;
  Rows from, to;
};

// An f16 or a bf16, so that types tell them apart.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

TRINE_DEVICE float ToFloat(float v) { return v; }
// Not HalfToFloat: what an instruction makes of a NaN is its own affair.
TRINE_DEVICE float ToFloat(Half v) { return quant::F16ToF32(v.bits); }
TRINE_DEVICE float ToFloat(Brain v) { return quant::Bf16ToF32(v.bits); }
TRINE_DEVICE void Store(float v, float* to) { *to = Canon(v); }
TRINE_DEVICE void Store(float v, Half* to) { to->bits = quant::F32ToF16Saturated(v); }
TRINE_DEVICE void Store(float v, Brain* to) { to->bits = quant::F32ToBf16(v); }

// Of one type, bytes; else values.
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

// In the largest units that rows of these bytes can be moved in.
Launch MoveBytes(Tensor src, Tensor dst) {
  for (size_t i = 1; i < 4; ++i) {
    if (src.dims[i] == 1) src.strides[i] = dst.strides[i] = 0;  // whatever they were
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

}  // namespace trine::hip
