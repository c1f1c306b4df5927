// Computes attention over a paged cache. Query rows that share a sequence and a kv head read the
// same keys and values. They go through these together, in blocks.
#include <cstdint>

#include "kernels/cpu/attention/attention_block.h"
#include "kernels/cpu/attention/attention_chunk.h"
#include "kernels/cpu/levels/kernel_table.h"
#include "kernels/cpu/levels/ops.h"
#include "kernels/cpu/simd/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Finds the sequence of each token. For tokens in increasing order, reads each offset once.
class Sequences {
 public:
  explicit Sequences(const View& q_offsets)
      : offsets_(I32Row(q_offsets, 0)), count_(q_offsets.dims[0] - 1) {}

  // Returns -1 for a token of no sequence.
  int64_t Of(int64_t token) {
    if (at_ < count_ && token < offsets_[at_]) at_ = 0;
    for (; at_ < count_; ++at_) {
      if (token < offsets_[at_]) return -1;
      if (token < offsets_[at_ + 1]) return at_;
    }
    return -1;
  }

 private:
  const int32_t* offsets_;
  int64_t count_;
  int64_t at_ = 0;
};

// Returns the positions that a token of `sequence` sees; none if `sequence` is -1.
inline Range Visible(const Call& call, int64_t sequence, int64_t token) {
  if (sequence < 0) return {};
  const int64_t kv_length = I32Row(call.in.kv_lengths, 0)[sequence];
  const int64_t position = kv_length - I32Row(call.in.q_offsets, 0)[sequence + 1] + token;
  Range visible = {0, kv_length};
  if (call.params.causal) visible.end = Least(visible.end, position + 1);
  if (call.params.window > 0) visible.begin = Most(0, position - call.params.window + 1);
  return visible;
}

// Returns whether heads are wider than this file handles; the reference then computes them.
bool IsTooWide(const AttentionInputs& inputs) { return inputs.k.dims[0] > kMaxWidth; }

Call MakeCall(const AttentionInputs& inputs, const AttentionParams& params) {
  const int64_t k_width = RoundUp(inputs.k.dims[0], 32);
  uint64_t k_bytes = 0, v_bytes = 0;
  quant::RowBytes(inputs.k.type, inputs.k.dims[0], &k_bytes);
  quant::RowBytes(inputs.v.type, inputs.v.dims[0], &v_bytes);
  return {.in = inputs,
          .params = params,
          .k_width = k_width,
          .v_width = inputs.v.dims[0],
          .k_bytes = static_cast<int64_t>(k_bytes),
          .v_bytes = static_cast<int64_t>(v_bytes),
          .max_queries = static_cast<int>(Least(kMaxQueries, kQueryFloats / k_width))};
}

// Adds a query to the block. Its weighted values go to o.
void AddQuery(const Call& call, int64_t token, int64_t head, Range visible, float* o,
              Block* block) {
  const int i = block->count++;
  Query& query = block->queries[i];
  query.o = o;
  query.head = head;
  query.visible = visible;
  query.joined = false;
  CopyRow<32>(RowF32(), RowAt(call.in.q, head, token, 0), 0, call.in.q.dims[0],
              block->q + i * call.k_width);
}

void Finish(const Call& call, Query* query) {
  const bool has_sink = call.in.sinks != nullptr;
  if (has_sink) Join(F32Row(*call.in.sinks, 0)[query->head], 1.0f, query);
  const float inverse_l = Recip(query->l);
  for (int64_t i = 0; i < call.v_width; i += kLanes) {
    const int64_t count = Least(kLanes, call.v_width - i);
    auto o = LoadPartial<kLanes>(query->o + i, count);
    if (has_sink) o = Canon(o * Splat<kLanes>(query->old_weight));
    StorePartial(Canon(o * Splat<kLanes>(inverse_l)), query->o + i, count);
  }
}

void SeeNothing(const Call& call, float* o) {
  __builtin_memset(o, 0, static_cast<size_t>(call.v_width) * sizeof(float));
}

// --- Whole rows

void Attend(const Call& call, Block* block) {
  if (block->count == 0) return;
  Range seen = block->queries[0].visible;
  for (int i = 1; i < block->count; ++i) {
    seen.begin = Least(seen.begin, block->queries[i].visible.begin);
    seen.end = Most(seen.end, block->queries[i].visible.end);
  }
  for (int64_t base = RoundDown(seen.begin, kChunk); base < seen.end; base += kChunk) {
    AddChunk(call, base, Intersection({seen.begin - base, seen.end - base}, {0, kChunk}), block);
  }
  for (int i = 0; i < block->count; ++i) Finish(call, &block->queries[i]);
  block->count = 0;
}

// Computes the rows of the range whose queries belong to one kv head.
void AttendKvHead(const Call& call, const View& dst, int64_t kv_head, Range rows, Block* block) {
  const int64_t heads = dst.dims[1];
  const int64_t group = heads / call.in.k.dims[2];
  block->kv_head = kv_head;
  block->count = 0;
  Sequences sequences(call.in.q_offsets);
  for (int64_t token = rows.begin / heads; token * heads < rows.end; ++token) {
    const Range own = {token * heads + kv_head * group, token * heads + (kv_head + 1) * group};
    const Range wanted = Intersection(own, rows);
    if (IsEmpty(wanted)) continue;
    const int64_t sequence = sequences.Of(token);
    const Range visible = Visible(call, sequence, token);
    if (sequence != block->sequence) Attend(call, block);
    block->sequence = sequence;
    for (int64_t r = wanted.begin; r < wanted.end; ++r) {
      float* o = F32Row(dst, r);
      if (IsEmpty(visible)) {
        SeeNothing(call, o);
        continue;
      }
      if (block->count == call.max_queries) Attend(call, block);
      AddQuery(call, token, r - token * heads, visible, o, block);
    }
  }
  Attend(call, block);
}

// --- Pieces

float* PartialOf(const Call& call, const AttentionPieces& pieces, int64_t row, int64_t chunk) {
  return pieces.partials + (row * pieces.chunks + chunk) * PartialFloats(call.v_width);
}

// Computes the chunk that starts at `base`. It is number `chunk` of the chunks that the token sees.
void AttendPiece(const Call& call, const AttentionPieces& pieces, int64_t token, Range visible,
                 int64_t base, int64_t chunk, Block* block) {
  const int64_t heads = call.in.q.dims[1], group = heads / call.in.k.dims[2];
  const Range part = Intersection(visible, {base, base + kChunk});
  const int64_t end = (block->kv_head + 1) * group;
  for (int64_t head = block->kv_head * group; head < end;) {
    block->count = 0;
    for (; head < end && block->count < call.max_queries; ++head) {
      float* partial = PartialOf(call, pieces, token * heads + head, chunk);
      AddQuery(call, token, head, part, partial + kPartialHeader, block);
    }
    AddChunk(call, base, {part.begin - base, part.end - base}, block);
    for (int i = 0; i < block->count; ++i) {
      const Query& query = block->queries[i];
      query.o[-kPartialHeader] = query.m;
      query.o[1 - kPartialHeader] = query.l;
    }
  }
}

// Joins the partial results of a row's chunks.
void JoinRow(const Call& call, const AttentionPieces& pieces, int64_t row, Query* query) {
  const int64_t chunks =
      RoundUp(query->visible.end, kChunk) / kChunk - query->visible.begin / kChunk;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const float* partial = PartialOf(call, pieces, row, chunk);
    Join(partial[0], partial[1], query);
    const float* o = partial + kPartialHeader;
    for (int64_t i = 0; i < call.v_width; i += kSlice) {
      const int64_t count = Least(kSlice, call.v_width - i);
      AddValues(*query, LoadPartial<kSlice>(o + i, count), i, count);
    }
  }
}

}  // namespace

void Attention(const AttentionInputs& inputs, const AttentionParams& params, const View& dst,
               Range rows) {
  if (IsTooWide(inputs)) return reference::Attention(inputs, params, dst, rows);
  const Call call = MakeCall(inputs, params);
  Block block;
  block.sequence = -1;
  for (int64_t kv_head = 0; kv_head < inputs.k.dims[2]; ++kv_head) {
    AttendKvHead(call, dst, kv_head, rows, &block);
  }
}

void AttendPieces(const AttentionInputs& inputs, const AttentionParams& params,
                  const AttentionPieces& pieces, Range range) {
  if (IsTooWide(inputs)) return;  // JoinPieces computes everything
  const Call call = MakeCall(inputs, params);
  Sequences sequences(inputs.q_offsets);
  Block block;
  for (int64_t piece = range.begin; piece < range.end; ++piece) {
    const int64_t kv_heads = inputs.k.dims[2], pair = piece / pieces.chunks;
    const int64_t token = pair / kv_heads, chunk = piece % pieces.chunks;
    block.kv_head = pair % kv_heads;
    block.sequence = sequences.Of(token);
    const Range visible = Visible(call, block.sequence, token);
    const int64_t base = RoundDown(visible.begin, kChunk) + chunk * kChunk;
    if (base >= visible.end || IsEmpty(visible)) continue;
    AttendPiece(call, pieces, token, visible, base, chunk, &block);
  }
}

void JoinPieces(const AttentionInputs& inputs, const AttentionParams& params,
                const AttentionPieces& pieces, const View& dst, Range rows) {
  if (IsTooWide(inputs)) return reference::Attention(inputs, params, dst, rows);
  const Call call = MakeCall(inputs, params);
  Sequences sequences(inputs.q_offsets);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t token = row / dst.dims[1];
    Query query{};
    query.o = F32Row(dst, row);
    query.head = row % dst.dims[1];
    query.visible = Visible(call, sequences.Of(token), token);
    if (IsEmpty(query.visible)) {
      SeeNothing(call, query.o);
      continue;
    }
    JoinRow(call, pieces, row, &query);
    Finish(call, &query);
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
