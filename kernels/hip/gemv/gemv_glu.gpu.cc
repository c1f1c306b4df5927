#include <type_traits>

#include "kernels/hip/gemv/gemv.h"
#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/gemv/gemv_quantized.h"
#include "kernels/hip/ops/column_norm.h"
#include "kernels/hip/ops/route.h"
#include "kernels/hip/ops/scalar_functions.h"

namespace trine::hip {
namespace {

// A block of threads computes one block of 32 quantised values: for every column, or with experts
// for one column. Each group of lanes computes some rows of both products, and then the values of
// one column. It loads the weights of one pass at a time: more would take the registers of a
// multiprocessor's second block.
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

// With moe_route before the products. The first block of a token writes its ids and weights.
struct RoutedGluArgs {
  GemvArgs gemv;
  reference::GluParams glu;
  QuantizedColumns to;
  Routing routing;
  const std::byte* logits;
  int64_t logits_stride;  // from token to token, in bytes
  std::byte* weights;
  int64_t weights_stride;
};

// kNormed: the kernel also computes the norm of x. kExperts: each column has the weights of its own
// expert. kRouted: the kernel also selects the experts.
enum class GluForm { kPlain, kNormed, kExperts, kRouted };

constexpr bool HasExperts(GluForm form) {
  return form == GluForm::kExperts || form == GluForm::kRouted;
}

template <GluForm kForm>
using GluArgs = std::conditional_t<kForm == GluForm::kRouted, RoutedGluArgs, GluGemvArgs>;

template <int kColumns>
struct GluShared {
  float results[2][kColumns][kValues];  // of gate and of up
  uint32_t expert;                      // if the kernel selects it
};

// Selects the experts of a column's token, with the block's first group of lanes, and returns the
// column's own to all threads.
TRINE_DEVICE uint32_t RouteColumn(const RoutedGluArgs& args, uint32_t column, uint32_t* expert) {
  constexpr int kOfLane = kMostRoutedExperts / kLanes;
  const uint32_t used = args.routing.used, token = column / used, slot = column % used;
  if (ThreadX() < kLanes) {
    const uint32_t lane = ThreadX();
    const auto* logits = reinterpret_cast<const float*>(args.logits + token * args.logits_stride);
    const Selected mine = Route<kOfLane>(args.routing, logits, lane);
    if (lane == slot) *expert = mine.id;
    if (BlockX() == 0 && slot == 0 && lane < used) {
      auto* ids = reinterpret_cast<std::byte*>(const_cast<int32_t*>(args.gemv.ids));
      reinterpret_cast<uint32_t*>(ids + token * args.gemv.ids_stride)[lane] = mine.id;
      reinterpret_cast<float*>(args.weights + token * args.weights_stride)[lane] = mine.weight;
    }
  }
  SyncBlock();
  return *expert;
}

// Like PlaceOf, for an expert that the kernel has selected, which the weights have.
TRINE_DEVICE GemvPlace PlaceOfSelected(const GemvArgs& args, const GemvPart& part,
                                       uint32_t expert) {
  const auto* bias = reinterpret_cast<const std::byte*>(part.bias);
  if (bias != nullptr) bias += expert * args.bias_stride;
  return {part.weights + expert * args.expert_stride, reinterpret_cast<const float*>(bias), false};
}

// Prefetches the rows of an expert that a group of lanes loads last: it has no registers for all of
// its rows at once.
TRINE_DEVICE void PrefetchRows(const std::byte* first, int64_t row_stride, uint32_t rows,
                               uint32_t lane) {
  for (int64_t at = lane * int64_t{128}; at < rows * row_stride; at += kLanes * 128) {
    Prefetch(first + at);
  }
}

// kPairs: rows of both products at a time.
template <class W, int kColumns, int kPairs, int kDepth, GluForm kForm>
TRINE_KERNEL_RESIDENT(kThreads, 2)
GluGemvKernel(GluArgs<kForm> args) {
  TRINE_SHARED(GluShared<kColumns>, shared);
  using Sums = ClassSums<2 * kPairs * kColumns>;
  constexpr bool kExperts = HasExperts(kForm);
  const auto lane = static_cast<int>(ThreadX() % kLanes);
  const uint32_t slot = ThreadX() / kLanes;
  const uint32_t from = BlockX() * kValues;
  const uint32_t first = kExperts ? BlockY() : 0;
  const uint32_t columns = kExperts ? 1 : args.gemv.columns;
  LetNextStart();
  if (kExperts || !args.gemv.constant) AwaitEarlier();
  [[maybe_unused]] uint32_t expert = 0;
  if constexpr (kForm == GluForm::kRouted) expert = RouteColumn(args, first, &shared.expert);
  GemvPlace places[2];
  TRINE_UNROLL
  for (uint32_t p = 0; p < 2; ++p) {
    const GemvPart& part = args.gemv.parts[p];
    if constexpr (kForm == GluForm::kRouted) {
      places[p] = PlaceOfSelected(args.gemv, part, expert);
    } else if constexpr (kForm == GluForm::kExperts) {
      places[p] = PlaceOf(args.gemv, part, first);
    } else {
      places[p] = {part.weights, part.bias, false};
    }
    places[p].weights += (from + slot * kRowsOfSlot) * part.row_stride;
  }
  const bool none = kExperts && places[0].none;  // the same for all threads
  if (kExperts && !none) {
    TRINE_UNROLL
    for (uint32_t p = 0; p < 2; ++p) {
      const int64_t stride = args.gemv.parts[p].row_stride;
      PrefetchRows(places[p].weights + kPairs * stride, stride, kRowsOfSlot - kPairs,
                   static_cast<uint32_t>(lane));
    }
  }
  for (uint32_t i = 0; i < kRowsOfSlot && !none; i += kPairs) {
    const std::byte* rows[2 * kPairs];
    TRINE_UNROLL
    for (uint32_t r = 0; r < 2 * kPairs; ++r) {
      rows[r] = places[r % 2].weights + (i + r / 2) * args.gemv.parts[r % 2].row_stride;
    }
    const Sums sums =
        QuantizedDots<W, kColumns, 2 * kPairs, kDepth>(args.gemv, rows, first, columns, lane, [&] {
          if constexpr (kForm == GluForm::kNormed) {
            TRINE_DYNAMIC_SHARED(float, memory);
            const ColumnNormBlock<kThreads> norm(args.norm, args.gemv.k, memory);
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
      const uint32_t row = slot * kRowsOfSlot + i + r / 2;  // within the block
      if (Sums::IsAt(j, lane)) {
        shared.results[r % 2][j % kColumns][row] =
            Result(places[r % 2].bias, from + row, sums.Of(j));
      }
    }
  }
  SyncBlock();
  static_assert(kColumns <= static_cast<int>(kSlots));
  if (slot >= kColumns || slot >= columns) return;
  const float value = GluValue(none ? 0.0f : shared.results[0][slot][lane],
                               none ? 0.0f : shared.results[1][slot][lane], args.glu);
  const int word = lane % 8;
  const Float4 four = {LaneRead(value, 4 * word), LaneRead(value, 4 * word + 1),
                       LaneRead(value, 4 * word + 2), LaneRead(value, 4 * word + 3)};
  QuantizeBlock(args.to, four, first + slot, BlockX(), static_cast<uint32_t>(word), lane < 8);
}

template <class W, int kColumns, int kPairs, int kDepth, GluForm kForm = GluForm::kPlain>
Launch GluGemvOf(const GluArgs<kForm>& args) {
  const uint32_t blocks = args.gemv.parts[0].n / kValues;
  return MakeLaunch(GluGemvKernel<W, kColumns, kPairs, kDepth, kForm>,
                    {blocks, HasExperts(kForm) ? args.gemv.columns : 1}, {kThreads}, args,
                    kForm == GluForm::kNormed ? ColumnNormBytes(args.gemv.k) : 0);
}

template <Type kType>
Launch GluGemvFor(const GluGemvArgs& args) {
  using W = Weights<kType, Layout::kPacked>;
  if (args.gemv.ids != nullptr) return GluGemvOf<W, 1, 2, 1, GluForm::kExperts>(args);
  if (args.norm.x != nullptr) return GluGemvOf<W, 1, 2, 1, GluForm::kNormed>(args);
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

Launch RoutedGluGemvLaunch(const MoeRoute& route, const Product& gate, const Product& up,
                           const reference::GluParams& params, const QuantizedColumns& to,
                           const DeviceShape& shape) {
  const Product both[] = {gate, up};
  const RoutedGluArgs args = {
      GemvArgsOf(both, shape),
      params,
      to,
      RoutingOf(route.logits, route.selection_bias, route.params, route.ids),
      route.logits.data,
      route.logits.strides[1],
      route.weights.data,
      route.weights.strides[1]};
  return quant::PackedBlockTypes::Call(gate.w.type, [&]<Type kType>() {
    return GluGemvOf<Weights<kType, Layout::kPacked>, 1, 2, 1, GluForm::kRouted>(args);
  });
}

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
