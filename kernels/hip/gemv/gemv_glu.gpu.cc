#include "kernels/hip/gemv/gemv.h"
#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/gemv/gemv_quantized.h"
#include "kernels/hip/ops/column_norm.h"
#include "kernels/hip/ops/scalar_functions.h"

namespace trine::hip {
namespace {

// A block of threads computes one block of 32 quantised values for every column. Each group of
// lanes computes some rows of both products, and then the values of one column. It loads the
// weights of one pass at a time: more would take the registers of a multiprocessor's second block.
constexpr uint32_t kSlots = 8;
constexpr uint32_t kThreads = kSlots * kLanes;
constexpr uint32_t kValues = 32;
constexpr uint32_t kRowsOfSlot = kValues / kSlots;

struct GluGemvArgs {
  GemvArgs gemv;  // two products: gate and up
  reference::GluParams glu;
  QuantizedColumns to;
  ColumnNorm norm;
};

template <int kColumns>
struct GluShared {
  float results[2][kColumns][kValues];  // of gate and of up
};

// kPairs: rows of both products at a time. kNormed: the kernel also computes the norm of x.
template <class W, int kColumns, int kPairs, int kDepth, bool kNormed>
TRINE_KERNEL_RESIDENT(kThreads, 2)
GluGemvKernel(GluGemvArgs args) {
  TRINE_SHARED(GluShared<kColumns>, shared);
  TRINE_DYNAMIC_SHARED(float, memory);
  using Sums = ClassSums<2 * kPairs * kColumns>;
  const auto lane = static_cast<int>(ThreadX() % kLanes);
  const uint32_t slot = ThreadX() / kLanes;
  const uint32_t from = BlockX() * kValues;
  LetNextStart();
  if (!args.gemv.constant) AwaitEarlier();
  const ColumnNormBlock<kThreads> norm(args.norm, args.gemv.k, memory);
  for (uint32_t i = 0; i < kRowsOfSlot; i += kPairs) {
    const uint32_t row = slot * kRowsOfSlot + i;  // within the block
    const std::byte* rows[2 * kPairs];
    TRINE_UNROLL
    for (uint32_t r = 0; r < 2 * kPairs; ++r) {
      const GemvPart& part = args.gemv.parts[r % 2];
      rows[r] = part.weights + (from + row + r / 2) * part.row_stride;
    }
    const Sums sums = QuantizedDots<W, kColumns, 2 * kPairs, kDepth>(args.gemv, rows, 0,
                                                                     args.gemv.columns, lane, [&] {
                                                                       if constexpr (kNormed) {
                                                                         if (i == 0) norm.Make();
                                                                         return norm.Columns();
                                                                       } else {
                                                                         AwaitEarlier();
                                                                         return args.gemv.q;
                                                                       }
                                                                     });
    TRINE_UNROLL
    for (int j = 0; j < 2 * kPairs * kColumns; ++j) {
      const auto r = static_cast<uint32_t>(j / kColumns);
      if (Sums::IsAt(j, lane)) {
        shared.results[r % 2][j % kColumns][row + r / 2] =
            Result(args.gemv.parts[r % 2].bias, from + row + r / 2, sums.Of(j));
      }
    }
  }
  SyncBlock();
  static_assert(kColumns <= static_cast<int>(kSlots));
  if (slot >= kColumns || slot >= args.gemv.columns) return;
  const float value =
      GluValue(shared.results[0][slot][lane], shared.results[1][slot][lane], args.glu);
  const int word = lane % 8;
  const Float4 four = {LaneRead(value, 4 * word), LaneRead(value, 4 * word + 1),
                       LaneRead(value, 4 * word + 2), LaneRead(value, 4 * word + 3)};
  QuantizeBlock(args.to, four, slot, BlockX(), static_cast<uint32_t>(word), lane < 8);
}

template <class W, int kColumns, int kPairs, int kDepth, bool kNormed = false>
Launch GluGemvOf(const GluGemvArgs& args) {
  return MakeLaunch(GluGemvKernel<W, kColumns, kPairs, kDepth, kNormed>,
                    {args.gemv.parts[0].n / kValues}, {kThreads}, args,
                    kNormed ? ColumnNormBytes(args.gemv.k) : 0);
}

template <Type kType>
Launch GluGemvFor(const GluGemvArgs& args) {
  using W = Weights<kType, Layout::kPacked>;
  if (args.norm.x != nullptr) return GluGemvOf<W, 1, 2, 1, true>(args);
  switch (GemvColumns(args.gemv)) {
    case 1:
      return GluGemvOf<W, 1, 2, 1>(args);
    case 2:
      return GluGemvOf<W, 2, 1, 2>(args);
    case 4:
      return GluGemvOf<W, 4, 1, 1>(args);
    default:
      return GluGemvOf<W, 8, 1, 1>(args);
  }
}

}  // namespace

bool HasGluGemv(Type type, bool packed) { return packed && quant::PackedBlockTypes::Has(type); }

Launch GluGemvLaunch(const Norm* norm, const Product& gate, const Product& up,
                     const reference::GluParams& params, const QuantizedColumns& to,
                     const DeviceShape& shape) {
  const Product both[] = {gate, up};
  GluGemvArgs args = {GemvArgsOf(both, shape), params, to, {}};
  if (norm != nullptr) args.norm = ColumnNormOf(*norm);
  return quant::PackedBlockTypes::Call(gate.w.type,
                                       [&]<Type kType>() { return GluGemvFor<kType>(args); });
}

}  // namespace trine::hip
