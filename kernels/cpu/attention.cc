// Attention over a paged cache: query rows that share a sequence and a kv head, and so read the
// same keys and values, go through them together, in blocks.

#include "kernels/cpu/attention_chunk.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

void Finish(const Call& call, Query* query) {
  const bool has_sink = call.in.sinks != nullptr;
  if (has_sink) Join(FloatsAt(*call.in.sinks, 0)[query->head], 1.0f, query);
  const float inverse_l = Recip(query->l);
  for (int64_t i = 0; i < call.v_width; i += kLanes) {
    const int64_t count = Least(kLanes, call.v_width - i);
    auto o = LoadPartial<kLanes>(query->o + i, count);
    if (has_sink) o = Canon(o * Splat<kLanes>(query->old_weight));
    StorePartial(Canon(o * Splat<kLanes>(inverse_l)), query->o + i, count);
  }
}

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

// The sequence of each token; asked for in increasing order it looks at each offset once.
class Sequences {
 public:
  explicit Sequences(const View& q_offsets)
      : offsets_(Ints(q_offsets)), count_(q_offsets.dims[0] - 1) {}

  // -1 for a token of no sequence.
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

// The positions that a token of the sequence sees.
Range Visible(const Call& call, int64_t sequence, int64_t token) {
  const int64_t kv_length = Ints(call.in.kv_lengths)[sequence];
  const int64_t position = kv_length - Ints(call.in.q_offsets)[sequence + 1] + token;
  Range visible = {0, kv_length};
  if (call.params.causal) visible.end = Least(visible.end, position + 1);
  if (call.params.window > 0) visible.begin = Most(0, position - call.params.window + 1);
  return visible;
}

void AddQuery(const Call& call, int64_t token, int64_t head, Range visible, Block* block) {
  const int i = block->count++;
  Query& query = block->queries[i];
  query.o = FloatsAt(call.dst, head, token, 0);
  query.head = head;
  query.visible = visible;
  query.joined = false;
  CopyRow<32>(RowF32(), BytesAt(call.in.q, head, token, 0), 0, call.in.q.dims[0],
              block->q + i * call.k_width);
}

// The rows of one kv head's queries that lie in the range.
void AttendKvHead(const Call& call, int64_t kv_head, Range rows, Block* block) {
  const int64_t heads = call.dst.dims[1];
  const int64_t group = heads / call.in.k.dims[2];
  block->kv_head = kv_head;
  block->count = 0;
  Sequences sequences(call.in.q_offsets);
  for (int64_t token = rows.begin / heads; token * heads < rows.end; ++token) {
    const Range own = {token * heads + kv_head * group, token * heads + (kv_head + 1) * group};
    const Range wanted = Intersection(own, rows);
    if (IsEmpty(wanted)) continue;
    const int64_t sequence = sequences.Of(token);
    const Range visible = sequence < 0 ? Range{} : Visible(call, sequence, token);
    if (sequence != block->sequence) Attend(call, block);
    block->sequence = sequence;
    for (int64_t r = wanted.begin; r < wanted.end; ++r) {
      if (IsEmpty(visible)) {
        __builtin_memset(FloatsAt(call.dst, r), 0, static_cast<size_t>(call.v_width) * 4);
        continue;
      }
      if (block->count == call.max_queries) Attend(call, block);
      AddQuery(call, token, r - token * heads, visible, block);
    }
  }
  Attend(call, block);
}

}  // namespace

void Attention(const AttentionInputs& inputs, const AttentionParams& params, const View& dst,
               Range rows) {
  const int64_t k_width = RoundUp(inputs.k.dims[0], 32);
  if (k_width > kMaxWidth) return reference::Attention(inputs, params, dst, rows);
  const int max_queries = static_cast<int>(Least(kMaxQueries, kQueryFloats / k_width));
  uint64_t k_bytes = 0, v_bytes = 0;
  quant::RowBytes(inputs.k.type, inputs.k.dims[0], &k_bytes);
  quant::RowBytes(inputs.v.type, inputs.v.dims[0], &v_bytes);
  const Call call = {.in = inputs,
                     .params = params,
                     .dst = dst,
                     .k_width = k_width,
                     .v_width = inputs.v.dims[0],
                     .k_bytes = static_cast<int64_t>(k_bytes),
                     .v_bytes = static_cast<int64_t>(v_bytes),
                     .max_queries = max_queries};
  Block block;
  block.sequence = -1;
  block.count = 0;
  for (int64_t kv_head = 0; kv_head < inputs.k.dims[2]; ++kv_head) {
    AttendKvHead(call, kv_head, rows, &block);
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
