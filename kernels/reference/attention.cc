// Computes attention over a paged cache, one (token, head) at a time, in chunks of 256 positions.
//
// A chunk's softmax is taken against the chunk's own maximum; chunks are joined left to right. The
// chunks and the classes within them belong to absolute positions, so the result depends neither on
// how a prompt was cut into batches nor on where a window begins.

#include <algorithm>

#include "kernels/quant/dequantize.h"
#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"

namespace trine::reference {
namespace {

using quant::kGroupValues;

constexpr int64_t kChunk = 256;

// The rows of one sequence and kv head in a cache, by position.
class CacheRows {
 public:
  CacheRows(const View& cache, const View& block_table, int64_t sequence, int64_t kv_head)
      : cache_(cache), blocks_(I32Row(block_table, sequence)), kv_head_(kv_head) {}

  // Reads values [32 * group, 32 * group + count) at a position.
  void Load(int64_t position, int64_t group, int count, float* out) const {
    const int64_t block = blocks_[position / cache_.dims[1]];
    const std::byte* row = RowAt(cache_, position % cache_.dims[1], kv_head_, block);
    quant::DequantizeGroup(cache_.type, row, group, count, out);
  }

  int64_t width() const { return cache_.dims[0]; }

 private:
  const View& cache_;
  const int32_t* blocks_;
  int64_t kv_head_;
};

int GroupCount(int64_t width, int64_t first) {
  return static_cast<int>(std::min<int64_t>(kGroupValues, width - first));
}

float Dot(const float* q, const CacheRows& k, int64_t position) {
  Sums32 sums;
  float key[kGroupValues];
  for (int64_t first = 0; first < k.width(); first += kGroupValues) {
    const int count = GroupCount(k.width(), first);
    k.Load(position, first / kGroupValues, count, key);
    for (int i = 0; i < count; ++i) sums.Add(i, q[first + i] * key[i]);
  }
  return sums.Total();
}

// The state of one output row: the chunks joined so far have the maximum m and the sum l. Their
// weighted values o are in the output row itself.
struct Joined {
  bool empty = true;
  float m = 0.0f;
  float l = 0.0f;
};

// The weights of the old state and of the next chunk in a join.
struct JoinWeights {
  float old_weight;
  float new_weight;
};

JoinWeights Join(float chunk_m, float chunk_l, Joined* state) {
  const float m = std::max(state->m, chunk_m);
  const JoinWeights weights = {Exp(state->m - m), Exp(chunk_m - m)};
  state->l = Canon(state->l * weights.old_weight) + Canon(chunk_l * weights.new_weight);
  state->m = m;
  return weights;
}

// Writes the probabilities of positions [visible.begin, visible.end), all in one chunk, to p[t mod
// 256]. Returns the chunk's maximum score.
float Probabilities(const float* q, const CacheRows& k, const AttentionParams& params,
                    Range visible, float* p) {
  const float inverse_cap = params.softcap != 0.0f ? Recip(params.softcap) : 0.0f;
  float m = -kHuge;
  for (int64_t t = visible.begin; t < visible.end; ++t) {
    float score = Canon(Dot(q, k, t) * params.scale);
    if (params.softcap != 0.0f) score = SoftcapValue(score, params.softcap, inverse_cap);
    p[t % kChunk] = score;
    m = std::max(m, score);
  }
  for (int64_t t = visible.begin; t < visible.end; ++t) p[t % kChunk] = Exp(p[t % kChunk] - m);
  return m;
}

// out[i] = sum over t of p_t * v_t[32 * group + i]: four classes, t mod 4.
void WeightedValues(const CacheRows& v, const float* p, Range visible, int64_t group, int count,
                    float* out) {
  ClassSums<4> sums[kGroupValues];
  float value[kGroupValues];
  for (int64_t t = visible.begin; t < visible.end; ++t) {
    v.Load(t, group, count, value);
    for (int i = 0; i < count; ++i) sums[i].Add(t, p[t % kChunk] * value[i]);
  }
  for (int i = 0; i < count; ++i) out[i] = sums[i].Total();
}

void AddChunk(const float* q, const CacheRows& k, const CacheRows& v, const AttentionParams& params,
              Range visible, Joined* state, float* o) {
  float p[kChunk];
  const float chunk_m = Probabilities(q, k, params, visible, p);
  Sums32 l;
  for (int64_t t = visible.begin; t < visible.end; ++t) l.Add(t, p[t % kChunk]);

  const bool first_chunk = state->empty;
  JoinWeights weights = {};
  if (first_chunk) {
    *state = {false, chunk_m, l.Total()};
  } else {
    weights = Join(chunk_m, l.Total(), state);
  }
  for (int64_t first = 0; first < v.width(); first += kGroupValues) {
    const int count = GroupCount(v.width(), first);
    float chunk_o[kGroupValues];
    WeightedValues(v, p, visible, first / kGroupValues, count, chunk_o);
    for (int i = 0; i < count; ++i) {
      float& joined = o[first + i];
      joined = first_chunk
                   ? chunk_o[i]
                   : Canon(joined * weights.old_weight) + Canon(chunk_o[i] * weights.new_weight);
    }
  }
}

// Joins a sink, which is a last chunk of one position whose value is zero.
void AddSink(float sink, int64_t width, Joined* state, float* o) {
  const JoinWeights weights = Join(sink, 1.0f, state);
  for (int64_t i = 0; i < width; ++i) o[i] = Canon(o[i] * weights.old_weight);
}

int64_t SequenceOfToken(const View& q_offsets, int64_t token) {
  const int32_t* offsets = I32Row(q_offsets, 0);
  for (int64_t s = 0; s + 1 < q_offsets.dims[0]; ++s) {
    if (token >= offsets[s] && token < offsets[s + 1]) return s;
  }
  return -1;
}

// Returns the positions that a token of the sequence sees.
Range Visible(const AttentionInputs& in, const AttentionParams& params, int64_t sequence,
              int64_t token) {
  const int32_t* offsets = I32Row(in.q_offsets, 0);
  const int64_t kv_length = I32Row(in.kv_lengths, 0)[sequence];
  const int64_t position = kv_length - offsets[sequence + 1] + token;
  Range visible = {0, kv_length};
  if (params.causal) visible.end = std::min(visible.end, position + 1);
  if (params.window > 0) visible.begin = std::max<int64_t>(0, position - params.window + 1);
  return visible;
}

void AttendRow(const AttentionInputs& in, const AttentionParams& params, int64_t head,
               int64_t token, float* o) {
  const int64_t width = in.v.dims[0];
  std::fill_n(o, width, 0.0f);
  const int64_t sequence = SequenceOfToken(in.q_offsets, token);
  if (sequence < 0) return;

  const int64_t kv_head = head / (in.q.dims[1] / in.k.dims[2]);
  const CacheRows k(in.k, in.block_table, sequence, kv_head);
  const CacheRows v(in.v, in.block_table, sequence, kv_head);
  const float* q = F32Row(in.q, head, token, 0);
  const Range visible = Visible(in, params, sequence, token);

  Joined state;
  for (int64_t t = visible.begin; t < visible.end; t = (t / kChunk + 1) * kChunk) {
    const int64_t chunk_end = std::min((t / kChunk + 1) * kChunk, visible.end);
    AddChunk(q, k, v, params, {t, chunk_end}, &state, o);
  }
  if (state.empty) return;
  if (in.sinks) AddSink(F32Row(*in.sinks, 0)[head], width, &state, o);
  const float inverse_l = Recip(state.l);
  for (int64_t i = 0; i < width; ++i) o[i] = Canon(o[i] * inverse_l);
}

}  // namespace

void Attention(const AttentionInputs& inputs, const AttentionParams& params, const View& dst,
               Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const RowIndex index = IndexOfRow(dst, r);
    AttendRow(inputs, params, index.i1, index.i2, F32Row(dst, r));
  }
}

}  // namespace trine::reference
