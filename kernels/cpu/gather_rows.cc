#include "kernels/cpu/gather_packed.h"
#include "kernels/cpu/map_row.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/row_readers.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vec_math.h"
#include "kernels/quant/group.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using quant::Type;

// Unpacking is the reference's: one row per token is little beside the matrices it goes through.
void DecodeQuantized(Type type, const std::byte* row, int64_t n, float* to) {
  quant::Group group;
  for (int64_t i = 0; i < n; i += quant::kGroupValues) {
    quant::LoadGroup(type, row, i / quant::kGroupValues, &group);
    for (int h = 0; h < 2; ++h) {
      const float scaled = group.d * static_cast<float>(group.scale[h]);
      const float minimum = group.dmin * static_cast<float>(group.min[h]);
      const F32x16 q = LoadI8<16>(group.q + 16 * h);
      Store(Canon(Splat<16>(scaled) * q - Splat<16>(minimum)), to + i + 16 * h);
    }
  }
}

template <typename Row>
void DecodeFloats(const std::byte* row, int64_t n, float* to) {
  const int64_t whole = n / kLanes * kLanes;
  CopyRow<kLanes>(Row(), row, 0, whole, to);
  float tail[kLanes];
  CopyRow<kLanes>(Row(), row, whole, n - whole, tail);
  for (int64_t i = whole; i < n; ++i) to[i] = tail[i - whole];
  MapRow(to, to, n, [](auto value) { return Canon(value); });
}

void DecodeRow(Type type, const std::byte* row, int64_t n, float* to) {
  switch (type) {
    case Type::kF32:
      return DecodeFloats<RowF32>(row, n, to);
    case Type::kF16:
      return DecodeFloats<RowF16>(row, n, to);
    case Type::kBF16:
      return DecodeFloats<RowBF16>(row, n, to);
    default:
      return DecodeQuantized(type, row, n, to);
  }
}

}  // namespace

void GatherRows(const View& table, const View& ids, const View& dst, Range rows) {
  const int64_t k = table.dims[0];
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int32_t id = Ints(ids)[r];
    float* y = FloatsAt(dst, r);
    if (id < 0 || id >= table.dims[1]) {
      __builtin_memset(y, 0, static_cast<size_t>(k) * sizeof(float));
      continue;
    }
    if (table.packed) {
      DecodePackedRow(table, id, y);
    } else {
      DecodeRow(table.type, BytesAt(table, id), k, y);
    }
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
