#include "kernels/cpu/half.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using quant::Type;
using Value = F32<kLanes>;

// One place of a row of each type that can be converted.
struct PlaceF32 {
  using Element = float;
  TRINE_INLINE Value Read(const float* from) { return Load<kLanes>(from); }
  TRINE_INLINE void Write(Value x, float* to) { Store(Canon(x), to); }
};
struct PlaceF16 {
  using Element = uint16_t;
  TRINE_INLINE Value Read(const uint16_t* from) { return LoadF16<kLanes>(from); }
  TRINE_INLINE void Write(Value x, uint16_t* to) { StoreF16Saturated(x, to); }
};
struct PlaceBF16 {
  using Element = uint16_t;
  TRINE_INLINE Value Read(const uint16_t* from) { return LoadBf16<kLanes>(from); }
  TRINE_INLINE void Write(Value x, uint16_t* to) { StoreBf16(x, to); }
};

template <typename From, typename To>
void ConvertRows(const View& src, const View& dst, Range rows) {
  using In = typename From::Element;
  using Out = typename To::Element;
  const int64_t n = src.dims[0];
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const In* from = reinterpret_cast<const In*>(BytesAt(src, r));
    Out* to = reinterpret_cast<Out*>(BytesAt(dst, r));
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) To::Write(From::Read(from + i), to + i);
    if (i == n) continue;
    In in[kLanes] = {};
    Out out[kLanes];
    for (int64_t j = i; j < n; ++j) in[j - i] = from[j];
    To::Write(From::Read(in), out);
    for (int64_t j = i; j < n; ++j) to[j] = out[j - i];
  }
}

}  // namespace

void Copy(const View& src, const View& dst, Range rows) {
  const auto is = [&](Type from, Type to) { return src.type == from && dst.type == to; };
  if (is(Type::kF32, Type::kF16)) return ConvertRows<PlaceF32, PlaceF16>(src, dst, rows);
  if (is(Type::kF32, Type::kBF16)) return ConvertRows<PlaceF32, PlaceBF16>(src, dst, rows);
  if (is(Type::kF16, Type::kF32)) return ConvertRows<PlaceF16, PlaceF32>(src, dst, rows);
  if (is(Type::kF16, Type::kBF16)) return ConvertRows<PlaceF16, PlaceBF16>(src, dst, rows);
  if (is(Type::kBF16, Type::kF32)) return ConvertRows<PlaceBF16, PlaceF32>(src, dst, rows);
  if (is(Type::kBF16, Type::kF16)) return ConvertRows<PlaceBF16, PlaceF16>(src, dst, rows);
  reference::Copy(src, dst, rows);  // bytes
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
