#include <algorithm>

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

Launch LaunchOf(Type type, bool packed, const GatherArgs& args) {
  switch (type) {
    case Type::kF32:
      return Gather<FloatRow<ScalarFloats<Type::kF32>>>(args);
    case Type::kF16:
      return packed ? Gather<FloatRow<PackedHalves>>(args)
                    : Gather<FloatRow<ScalarFloats<Type::kF16>>>(args);
    case Type::kBF16:
      return Gather<FloatRow<ScalarFloats<Type::kBF16>>>(args);
    default:
      break;
  }
  if (packed) {
    return quant::PackedBlockTypes::Call(type, [&]<Type kType>() {
      return Gather<QuantizedRow<Weights<kType, Layout::kPacked>>>(args);
    });
  }
  return quant::CallForWeights(type, [&]<Type kType>() {
    return Gather<QuantizedRow<Weights<kType, Layout::kFile>>>(args);
  });
}

}  // namespace

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
  return LaunchOf(table.type, table.packed, args);
}

}  // namespace trine::hip
