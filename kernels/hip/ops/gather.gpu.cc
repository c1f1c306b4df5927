#include <algorithm>
#include <limits>

#include "kernels/hip/ops/ops.h"
#include "kernels/hip/weights/float_weights.h"
#include "kernels/hip/weights/weight_group.h"
#include "kernels/quant/packed_rows.h"

namespace trine::hip {
namespace {

constexpr int kThreads = 128;

struct GatherArgs {
  const std::byte* table;
  int64_t row_stride;
  uint32_t rows, k, n;
  const int32_t* ids;
  std::byte* y;
  int64_t y_stride;
};

// Returns values 4 * word to 4 * word + 3 of a row. A row of floats may have fewer at its end.
template <class W>
struct QuantizedRow {
  TRINE_DEVICE static void Four(const std::byte* row, uint32_t k, uint32_t word, float (&v)[4]) {
    constexpr GroupForm kForm = quant::FormOf(W::kWeightType);
    // Eight lanes load the same block, each for one word of it.
    const uint32_t block = word / 8;
    const auto group = W::Decode(W::Load(row, k / 32, block), block);
    const uint32_t* q = group.words.q;
    const uint32_t in_half = (word & 2u) != 0 ? ((word & 1u) != 0 ? 3 : 2) : word & 1u;
    const bool upper = (word & 4u) != 0;
    const uint32_t low = in_half == 0 ? q[0] : in_half == 1 ? q[1] : in_half == 2 ? q[2] : q[3];
    const uint32_t high = in_half == 0 ? q[4] : in_half == 1 ? q[5] : in_half == 2 ? q[6] : q[7];
    const uint32_t bytes = upper ? high : low;
    const int32_t scale = upper ? group.words.scale[1] : group.words.scale[0];
    const int32_t min = upper ? group.words.min[1] : group.words.min[0];
    const float scaled = kForm.scaled ? group.d * static_cast<float>(scale) : group.d;
    const float minimum = kForm.minimum ? group.dmin * static_cast<float>(min) : 0.0f;
    for (int i = 0; i < 4; ++i) {
      // Bytes are signed if the format has no zero to subtract: in Q8_0 and in tables.
      const int32_t value = static_cast<int8_t>(bytes >> (8 * i)) - kForm.zero;
      const float product = scaled * static_cast<float>(value);
      v[i] = Canon(kForm.minimum ? product - minimum : product);
    }
  }
};

template <class W>
struct FloatRow {
  TRINE_DEVICE static void Four(const std::byte* row, uint32_t k, uint32_t word, float (&v)[4]) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t at = word * 4 + i;
      v[i] = at < k ? Canon(W::One(row, k, at)) : 0.0f;
    }
  }
};

template <class Row>
TRINE_KERNEL(kThreads)
GatherKernel(GatherArgs args) {
  BeginAfterEarlier();
  const uint32_t words = (args.k + 3) / 4;
  for (uint32_t r = BlockY(); r < args.n; r += GridY()) {
    const auto id = static_cast<uint32_t>(args.ids[r]);  // negative ids become large
    const std::byte* row = args.table + (id < args.rows ? id : 0) * args.row_stride;
    auto* y = reinterpret_cast<float*>(args.y + r * args.y_stride);
    for (uint32_t word = BlockX() * kThreads + ThreadX(); word < words;
         word += GridX() * kThreads) {
      float v[4] = {};
      if (id < args.rows) Row::Four(row, args.k, word, v);
      for (uint32_t i = 0; i < 4; ++i) {
        if (word * 4 + i < args.k) y[word * 4 + i] = v[i];
      }
    }
  }
}

template <class Row>
Launch Gather(const GatherArgs& args) {
  const uint32_t words = (args.k + 3) / 4;
  return MakeLaunch(GatherKernel<Row>,
                    {(words + kThreads - 1) / kThreads, std::min(args.n, kMaxGridYZ)}, {kThreads},
                    args);
}
template <Type kType>
Launch GatherFile(const GatherArgs& args) {
  return Gather<QuantizedRow<Weights<kType, Layout::kFile>>>(args);
}
template <Type kType>
Launch GatherEither(bool packed, const GatherArgs& args) {
  return packed ? Gather<QuantizedRow<Weights<kType, Layout::kPacked>>>(args)
                : GatherFile<kType>(args);
}

Launch LaunchOf(Type type, bool packed, const GatherArgs& args) {
  switch (type) {
    case Type::kF32:
      return Gather<FloatRow<ScalarFloats<Type::kF32>>>(args);
    case Type::kF16:
      return packed ? Gather<FloatRow<PackedHalves>>(args)
                    : Gather<FloatRow<ScalarFloats<Type::kF16>>>(args);
    case Type::kBF16:
      return Gather<FloatRow<ScalarFloats<Type::kBF16>>>(args);
    case Type::kQ4_0:
      return GatherEither<Type::kQ4_0>(packed, args);
    case Type::kQ8_0:
      return GatherEither<Type::kQ8_0>(packed, args);
    case Type::kQ4_K:
      return GatherEither<Type::kQ4_K>(packed, args);
    case Type::kQ5_K:
      return GatherEither<Type::kQ5_K>(packed, args);
    case Type::kQ6_K:
      return GatherEither<Type::kQ6_K>(packed, args);
    case Type::kQ4_1:
      return GatherFile<Type::kQ4_1>(args);
    case Type::kQ5_0:
      return GatherFile<Type::kQ5_0>(args);
    case Type::kQ5_1:
      return GatherFile<Type::kQ5_1>(args);
    case Type::kQ2_K:
      return GatherFile<Type::kQ2_K>(args);
    case Type::kQ3_K:
      return GatherFile<Type::kQ3_K>(args);
    case Type::kIQ4_NL:
      return GatherFile<Type::kIQ4_NL>(args);
    case Type::kIQ4_XS:
      return GatherFile<Type::kIQ4_XS>(args);
    case Type::kTQ1_0:
      return GatherFile<Type::kTQ1_0>(args);
    case Type::kTQ2_0:
      return GatherFile<Type::kTQ2_0>(args);
    case Type::kMXFP4:
      return GatherFile<Type::kMXFP4>(args);
    default:
      return {};
  }
}

}  // namespace

std::string WhyNotGatherRows(const Tensor& table) {
  const quant::TypeTraits traits = quant::Traits(table.type);
  const std::string type = traits.name;
  if (table.type == Type::kI32 || table.type == Type::kQ8_KV || traits.block_bytes == 0) {
    return type + " is no type of weights";
  }
  if (table.packed && !quant::HasPackedLayout(table.type)) return type + " has no packed layout";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (table.dims[0] > kMost || table.dims[1] > kMost) return "a dimension is larger than 2^31 - 1";
  return {};
}

Launch GatherRowsLaunch(const Tensor& table, const Tensor& ids, const Tensor& y) {
  GatherArgs args;
  args.table = table.data;
  args.row_stride = table.strides[1];
  args.rows = static_cast<uint32_t>(table.dims[1]);
  args.k = static_cast<uint32_t>(table.dims[0]);
  args.n = static_cast<uint32_t>(ids.dims[0]);
  args.ids = reinterpret_cast<const int32_t*>(ids.data);
  args.y = y.data;
  args.y_stride = y.strides[1];
  Launch launch = LaunchOf(table.type, table.packed, args);
  return launch;
}

}  // namespace trine::hip
