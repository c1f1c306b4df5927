#include <algorithm>

#include "kernels/hip/gemv/gemv.h"
#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/gemv/gemv_quantized.h"

namespace trine::hip {
namespace {

// A group of lanes computes one row of the result. It multiplies that row of a token's experts, a
// batch of experts at a time, so that the weights of all of them are loaded together; then it
// combines the results in the order of the token's experts.
constexpr uint32_t kBatch = 8;
// With more blocks of 32 values in a row, the launch of a product and that of its combination are
// faster: they load weights ahead.
constexpr int64_t kMostBlocks = 3 * kLanes;

struct CombineGemvArgs {
  GemvArgs gemv;  // one product with experts, whose result is not written
  Rows weights;   // of a token's experts
  Rows addend;    // may have no data
  Rows y;
  uint32_t tokens;
};

// The experts of a batch. Lane i has the id and the weight of expert i % kBatch of the batch.
struct Batch {
  uint32_t id;  // at least the number of experts: none
  float weight;
};

TRINE_DEVICE Batch BatchAt(const CombineGemvArgs& args, uint32_t token, uint32_t slot) {
  if (slot >= args.gemv.y_columns) return {0xffffffffu, 0.0f};
  const auto* ids = reinterpret_cast<const uint32_t*>(
      reinterpret_cast<const std::byte*>(args.gemv.ids) + token * args.gemv.ids_stride);
  const auto* weights =
      reinterpret_cast<const float*>(args.weights.data + token * args.weights.strides[0]);
  return {ids[slot], weights[slot]};
}

// Multiplies row `row` of a batch of experts, whose columns begin at `column`. Lane i has the id of
// expert i; bit i of `there` tells whether it is an expert.
template <class W>
TRINE_DEVICE ClassSums<kBatch> BatchDots(const GemvArgs& args, uint32_t id, uint32_t there,
                                         uint32_t row, uint32_t column, uint32_t lane) {
  constexpr Type kType = W::kWeightType;
  const GemvPart& part = args.parts[0];
  const uint32_t blocks = args.k / 32;
  ClassSums<kBatch> sums;
  sums.Clear();
  for (uint32_t first = 0; first < blocks; first += kLanes) {
    // Beyond a row's end its last block is loaded again.
    const bool ours = first + lane < blocks;
    const uint32_t block = ours ? first + lane : blocks - 1;
    typename W::Raw raw[kBatch];
    TRINE_UNROLL
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t expert = LaneRead(id, static_cast<int>(i));
      if ((there >> i & 1) == 0) continue;  // the same for all lanes
      raw[i] = W::Load(part.weights + expert * args.expert_stride + row * part.row_stride, blocks,
                       block);
    }
    float terms[kBatch];
    TRINE_UNROLL
    for (uint32_t i = 0; i < kBatch; ++i) {
      terms[i] = 0.0f;  // changes no sum
      if ((there >> i & 1) == 0) continue;
      const int64_t at = int64_t{ColumnOfX(args, column + i)} * blocks + block;
      const float term = BlockTerm(W::Decode(raw[i], block), LoadActivation<kType>(args.q, at));
      terms[i] = ours ? term : 0.0f;
    }
    sums.Add(terms, static_cast<int>(lane));
  }
  sums.Join();
  return sums;
}

template <class W>
TRINE_KERNEL_RESIDENT(kGemvThreads, 4)
CombineGemvKernel(CombineGemvArgs args) {
  using Sums = ClassSums<kBatch>;
  const uint32_t lane = ThreadX() % kLanes, used = args.gemv.y_columns;
  const GemvPart& part = args.gemv.parts[0];
  const uint32_t row = BlockX() * kGemvSlots + ThreadX() / kLanes;
  BeginAfterEarlier();
  if (row >= part.n) return;  // the same for all lanes of the group
  for (uint32_t token = BlockY(); token < args.tokens; token += GridY()) {
    float sum = 0.0f;  // no term is -0, so adding the first to +0 changes no bit
    for (uint32_t slot = 0; slot < used; slot += kBatch) {
      const Batch batch = BatchAt(args, token, slot + lane % kBatch);
      uint32_t there = 0;
      TRINE_UNROLL
      for (uint32_t i = 0; i < kBatch; ++i) {
        there |= LaneRead(batch.id, static_cast<int>(i)) < args.gemv.experts ? 1u << i : 0u;
      }
      const Sums sums = BatchDots<W>(args.gemv, batch.id, there, row, token * used + slot, lane);
      TRINE_UNROLL
      for (uint32_t i = 0; i < kBatch; ++i) {
        const float dot = LaneRead(sums.Of(static_cast<int>(i)), static_cast<int>(i % 4 * 8));
        const float weight = LaneRead(batch.weight, static_cast<int>(i));
        const uint32_t expert = LaneRead(batch.id, static_cast<int>(i));
        if (slot + i >= used) continue;
        float value = 0.0f;
        if ((there >> i & 1) != 0) {
          const auto* bias = reinterpret_cast<const std::byte*>(part.bias);
          if (bias != nullptr) bias += expert * args.gemv.bias_stride;
          value = Result(reinterpret_cast<const float*>(bias), row, dot);
        }
        sum = sum + Canon(value * weight);
      }
    }
    if (lane != 0) continue;
    float value = Canon(sum);
    if (args.addend.data != nullptr) {
      const std::byte* addend = args.addend.data + token * args.addend.strides[0];
      value = Canon(value + reinterpret_cast<const float*>(addend)[row]);
    }
    reinterpret_cast<float*>(args.y.data + token * args.y.strides[0])[row] = value;
  }
}

}  // namespace

bool HasCombineGemv(Type type, bool packed, int64_t k) {
  return packed && quant::PackedBlockTypes::Has(type) && k / 32 <= kMostBlocks;
}

Launch CombineGemvLaunch(const Product& product, const Tensor& weights, const Tensor& addend,
                         const Tensor& y, const DeviceShape& shape) {
  CombineGemvArgs args = {GemvArgsOf({&product, 1}, shape), RowsOf(weights), RowsOf(addend),
                          RowsOf(y), static_cast<uint32_t>(y.dims[1])};
  const Dim grid = {(args.gemv.parts[0].n + kGemvSlots - 1) / kGemvSlots,
                    std::min(args.tokens, kMaxGridYZ)};
  return quant::PackedBlockTypes::Call(product.w.type, [&]<Type kType>() {
    return MakeLaunch(CombineGemvKernel<Weights<kType, Layout::kPacked>>, grid, {kGemvThreads},
                      args);
  });
}

}  // namespace trine::hip
