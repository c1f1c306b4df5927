// Multiplies few long rows with one column. The groups of lanes of a block take turns along its
// rows, so that all bytes of the rows are loaded at once. Then each group adds up a row in the
// contract's order.
#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/gemv/gemv_quantized.h"

namespace trine::hip {
namespace {

constexpr int kRows = kGemvSlots;  // rows of a block: one for each group

template <class W>
TRINE_KERNEL(kGemvThreads)
SplitGemvKernel(GemvArgs args) {
  TRINE_DYNAMIC_SHARED(float, terms);  // row by row, and within a row block by block
  constexpr Type kType = W::kWeightType;
  const uint32_t lane = ThreadX() % kLanes, group = ThreadX() / kLanes;
  const GemvPart part = PartOf(args);
  const uint32_t row = (BlockX() - part.first_block) * kRows;
  const uint32_t blocks = args.k / 32, passes = (blocks + kLanes - 1) / kLanes;
  const std::byte* rows[kRows];
  TRINE_UNROLL
  for (uint32_t r = 0; r < kRows; ++r) {
    rows[r] = part.weights + (row + r < part.n ? row + r : part.n - 1) * part.row_stride;
  }
  // Beyond a row's end its last block is loaded again, so that no branch comes between the loads.
  const auto block_of = [&](uint32_t pass) {
    const uint32_t block = pass * kLanes + lane;
    return block < blocks ? block : blocks - 1;
  };
  typename W::Raw now[kRows], next[kRows];
  const auto load = [&](uint32_t pass) {
    TRINE_UNROLL
    for (int r = 0; r < kRows; ++r) next[r] = W::Load(rows[r], blocks, block_of(pass));
  };
  LetNextStart();
  if (!args.constant) AwaitEarlier();
  load(group < passes ? group : 0);
  AwaitEarlier();
  for (uint32_t pass = group; pass < passes; pass += kGemvSlots) {
    TRINE_UNROLL
    for (int r = 0; r < kRows; ++r) now[r] = next[r];
    if (pass + kGemvSlots < passes) load(pass + kGemvSlots);
    const uint32_t block = block_of(pass);
    const bool ours = pass * kLanes + lane < blocks;
    const ActivationWords a = LoadActivation<kType>(args.q, block);
    TRINE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const float term = BlockTerm(W::Decode(now[r], block), a);
      const uint32_t at = (static_cast<uint32_t>(r) * passes + pass) * kLanes + lane;
      terms[at] = ours ? term : 0.0f;  // 0 changes no sum
    }
  }
  SyncBlock();
  // Lanes of one class have the same sum.
  const float* of_class = terms + group * passes * kLanes + lane % 8;
  float sum = 0.0f;
  for (uint32_t pass = 0; pass < passes; ++pass, of_class += kLanes) {
    const float a = of_class[0], b = of_class[8], c = of_class[16], d = of_class[24];
    sum = (((sum + a) + b) + c) + d;
  }
  TRINE_UNROLL
  for (int mask = 4; mask > 0; mask /= 2) sum = sum + LaneXor(sum, mask);
  if (lane == 0 && row + group < part.n) {
    Store(args, part, {part.weights, part.bias, false}, row + group, 0, sum);
  }
}

uint32_t PassesOf(const GemvArgs& args) { return (args.k / 32 + kLanes - 1) / kLanes; }

template <Type kType>
Launch SplitGemvFor(GemvArgs args) {
  const Dim grid = GemvGrid(1, 1, &args);
  const uint32_t shared = PassesOf(args) * kLanes * kRows * sizeof(float);
  return MakeLaunch(SplitGemvKernel<Weights<kType, Layout::kPacked>>, grid, {kGemvThreads}, args,
                    shared);
}

}  // namespace

bool IsForSplitGemv(const GemvArgs& args) {
  const uint32_t passes = PassesOf(args);
  return args.columns == 1 && args.ids == nullptr && !args.many_rows && args.is_little &&
         passes >= kGemvSlots && passes <= 64;  // at most 32 KiB of terms
}

Launch SplitGemv(Type type, const GemvArgs& args) {
  return quant::PackedBlockTypes::Call(type,
                                       [&]<Type kType>() { return SplitGemvFor<kType>(args); });
}

}  // namespace trine::hip
