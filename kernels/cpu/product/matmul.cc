#include <algorithm>
#include <cstdint>

#include "kernels/cpu/levels/ops.h"
#include "kernels/cpu/product/chunk_tile.h"
#include "kernels/cpu/product/dot_columns.h"
#include "kernels/cpu/product/paired_columns.h"
#include "kernels/cpu/simd/amx.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Columns are multiplied in multiples of this number, so that no pair is divided.
constexpr int kColumnMultiple = 8;
static_assert(kColumnMultiple % kCellColumns == 0 && kMaxColumns % kColumnMultiple == 0);
// The least result of ColumnsInReach. With fewer columns, tiles would not pay.
constexpr int kLeastInReach = 32;

void Zero(const View& dst, int64_t slot, int64_t token, Range features) {
  float* y = F32Row(dst, slot, token, 0);
  for (int64_t i = features.begin; i < features.end; ++i) y[i] = 0.0f;
}

const int32_t* IdsOf(const View& ids, int64_t token) {
  return reinterpret_cast<const int32_t*>(RowAt(ids, token, 0, 0));
}

// The slots of tokens that chose each of some experts. Slots are numbered token by token. Looking
// at all slots once for each expert would take longer than small products.
class SlotsOfExperts {
 public:
  // The most slots and experts at a time: few enough for a thread's stack.
  static constexpr int64_t kMostSlots = 8192, kMostExperts = 256;

  // Finds those of the given slots that chose one of the experts.
  void Find(const View& ids, int64_t n_used, Range slots, Range experts) {
    experts_ = experts;
    for (int64_t e = 0; e <= kMostExperts; ++e) begin_[e] = 0;
    ForEach(ids, n_used, slots, [&](int64_t expert, uint32_t) { ++begin_[expert + 1]; });
    for (int64_t e = 0; e < kMostExperts; ++e) begin_[e + 1] += begin_[e];
    for (int64_t e = 0; e < kMostExperts; ++e) end_[e] = begin_[e];
    ForEach(ids, n_used, slots, [&](int64_t expert, uint32_t i) { slots_[end_[expert]++] = i; });
  }

  Range experts() const { return experts_; }
  const uint32_t* Begin(int64_t expert) const { return slots_ + begin_[expert - experts_.begin]; }
  const uint32_t* End(int64_t expert) const { return slots_ + end_[expert - experts_.begin]; }

 private:
  // Calls with the expert, counted from the first one, and the slot.
  template <class Call>
  void ForEach(const View& ids, int64_t n_used, Range slots, Call call) const {
    for (int64_t i = slots.begin; i < slots.end;) {
      const int64_t token = i / n_used;
      const int32_t* const chosen = IdsOf(ids, token);
      for (int64_t slot = i % n_used; slot < n_used && i < slots.end; ++slot, ++i) {
        const int64_t expert = chosen[slot];
        if (expert < experts_.begin || expert >= experts_.end) continue;
        call(expert - experts_.begin, static_cast<uint32_t>(i));
      }
    }
  }

  Range experts_;
  uint32_t begin_[kMostExperts + 1], end_[kMostExperts];
  uint32_t slots_[kMostSlots];
};

// Multiplies an expert with its columns, in the way that the tuning chooses for it.
void MultiplyExpert(const WeightRows& weights, Columns& columns, Range features) {
  const ExpertWays* const ways = columns.tuning.experts;
  if (ways == nullptr || columns.count < 2) return DotColumns(weights, columns, features);
  columns.tuning.way = ways->begin(ways->self, columns.count);
  DotColumns(weights, columns, features);
  ways->end(ways->self);
}

}  // namespace

int ColumnsInReach(const Caches& caches) {
  constexpr int64_t kBytes = kTileChunks * sizeof(ActivationChunk);
  const int64_t columns = caches.second_level / 2 / kBytes / kColumnMultiple * kColumnMultiple;
  return static_cast<int>(columns < kLeastInReach ? kLeastInReach
                          : columns > kMaxColumns ? kMaxColumns
                                                  : columns);
}

void Matmul(const View& w, const View& x, const ActivationChunk* chunks, const View* bias,
            const View& dst, Range features, const Tuning& tuning) {
  const WeightRows weights = {w.type,   w.data,    w.strides[1],
                              w.packed, w.dims[0], bias ? F32Row(*bias, 0) : nullptr};
  const int64_t m = x.dims[1];
#if TRINE_HAS_AMX
  if (chunks != nullptr && m >= kInterleavedRows) {
    return MultiplyRecords(weights, {m, chunks, dst.data, dst.strides[1]}, features, tuning.caches);
  }
#endif
  Columns columns;
  columns.paired = chunks != nullptr && LieInPairs(m);
  columns.step = ActivationStep(m);
  columns.tuning = tuning;
  const int in_reach = ColumnsInReach(tuning.caches);
  for (int64_t first = 0; first < m; first += in_reach) {
    columns.count = static_cast<int>(m - first < in_reach ? m - first : in_reach);
    for (int c = 0; c < columns.count; ++c) {
      columns.chunks[c] = chunks ? chunks + FirstChunkOf(first + c, m, weights.k) : nullptr;
      columns.x[c] = F32Row(x, first + c, 0, 0);
      columns.y[c] = F32Row(dst, first + c, 0, 0);
    }
    DotColumns(weights, columns, features);
  }
}

bool MatmulHasWays(const View& w, int64_t columns) {
  if (columns <= 1) return false;
  if (!quant::IsQuantized(w.type)) return true;
  if (TRINE_HAS_AMX && columns >= kInterleavedRows) return false;
  return !LieInPairs(columns) || (w.packed && w.dims[0] <= kMaxUnpairedValues);
}

void DotColumns(const WeightRows& weights, const Columns& columns, Range rows) {
  if (weights.packed) return DotPackedColumns(weights, columns, rows);
  switch (weights.type) {
    case quant::Type::kF32:
    case quant::Type::kF16:
    case quant::Type::kBF16:
      return DotFloatColumns(weights, columns, rows);
    default:
      return DotQuantizedColumns(weights, columns, rows);
  }
}

// Multiplies an expert with all slots that chose it, as its columns, so that its weights are read
// once for all of them. (If there are more slots than a piece has room for, they are taken in
// several pieces.)
void MoeMatmul(const View& w, const View& x, const ActivationChunk* chunks, const View& ids,
               const View* bias, const View& dst, Range features, const Tuning& tuning) {
  const int64_t n_used = dst.dims[1], slots = n_used * dst.dims[2], n_experts = w.dims[2];
  const int64_t x_slots = x.dims[1];
  Columns columns;
  columns.tuning = tuning;
  columns.step = ActivationStep(x_slots * x.dims[2]);
  const int in_reach = ColumnsInReach(tuning.caches);
  const auto add = [&](uint32_t i) {
    const int64_t slot = i % n_used, token = i / n_used;
    const int64_t x_slot = x_slots == 1 ? 0 : slot;
    const int c = columns.count++;
    columns.chunks[c] =
        chunks ? chunks + FirstChunkOf(token * x_slots + x_slot, x_slots * x.dims[2], w.dims[0])
               : nullptr;
    columns.x[c] = F32Row(x, x_slot, token, 0);
    columns.y[c] = F32Row(dst, slot, token, 0);
  };
  SlotsOfExperts chosen;
  for (int64_t first = 0; first < slots; first += SlotsOfExperts::kMostSlots) {
    const Range piece = {first, std::min(first + SlotsOfExperts::kMostSlots, slots)};
    for (int64_t group = 0; group < n_experts; group += SlotsOfExperts::kMostExperts) {
      chosen.Find(ids, n_used, piece,
                  {group, std::min(group + SlotsOfExperts::kMostExperts, n_experts)});
      for (int64_t expert = group; expert < chosen.experts().end; ++expert) {
        const WeightRows weights = {w.type,       RowAt(w, 0, expert, 0),
                                    w.strides[1], w.packed,
                                    w.dims[0],    bias ? F32Row(*bias, expert, 0, 0) : nullptr};
        columns.count = 0;
        for (const uint32_t* i = chosen.Begin(expert); i != chosen.End(expert); ++i) {
          add(*i);
          if (columns.count < in_reach && i + 1 != chosen.End(expert)) continue;
          MultiplyExpert(weights, columns, features);
          columns.count = 0;
        }
      }
    }
  }
  for (int64_t i = 0; i < slots; ++i) {
    const int64_t slot = i % n_used, token = i / n_used, expert = IdsOf(ids, token)[slot];
    if (expert < 0 || expert >= n_experts) Zero(dst, slot, token, features);
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
