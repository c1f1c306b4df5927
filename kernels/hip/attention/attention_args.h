// The arguments of attention's kernels, and the functions that these kernels share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/hip/attention/attention.h"
#include "kernels/hip/gpu/device.h"
#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/weights/quantized.h"
#include "kernels/hip/weights/tensor.h"

namespace trine::hip {

inline constexpr int32_t kChunk = 256;  // positions

// The way in which the rows of both caches are read.
enum class CacheForm {
  kF32,
  kF16,
  kBf16,
  kQ8,
  kAny,  // element by element: types differ, or rows are not whole, aligned vectors
};

struct CacheArgs {
  const std::byte* data;
  int64_t position, head, block;  // strides
  uint32_t width;
  uint32_t row_bytes;
  quant::Type type;
};

// The new rows of k and v of a single token. If `k` is set, attention's blocks rotate q and k and
// store k and v themselves, so no launch of RotateStore comes before them.
struct NewRows {
  const float* k = nullptr;  // null: RotateStore has done it
  const float* v = nullptr;
  int64_t k_head = 0, v_head = 0;  // strides
  const float* cosines = nullptr;  // as in Rotation
  const int32_t* slot = nullptr;   // the KV slot of the new rows
  uint32_t pairs = 0, slots = 0;   // slots: the number of KV slots in the caches
  bool halves = false;
  // The weights of the rms_norm of each head of q and of k, before the rotation; both or none.
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  float q_eps = 0.0f, k_eps = 0.0f, inverse_width = 0.0f;
};

struct AttentionArgs {
  const std::byte* q;
  int64_t q_head, q_token;
  CacheArgs k, v;
  const int32_t* block_table;
  int64_t table_sequence;  // stride, in entries
  const int32_t* q_offsets;
  const int32_t* kv_lengths;
  const float* sinks;
  std::byte* y;
  int64_t y_head, y_token;
  QuantizedColumns quantized;
  NewRows before;
  bool early;  // no kernel writes the table, offsets, lengths, cosines, slot or weights of norms

  float scale, softcap, inverse_cap;
  int32_t window;  // 0: none
  bool causal;
  // true: a block does one chunk and leaves the result in scratch. false: it does all chunks and
  // finishes its rows.
  bool split;
  uint32_t tokens, heads, group, sequences;
  uint32_t block_positions;
  uint32_t parts;  // blocks for a kv head: parts of a group, or tiles of all tokens' groups

  // Results by (token, head) and chunk, counted from the first chunk that the token sees: the
  // values, padded to whole vectors; and the maximum and the sum.
  float* scratch_values;
  float* scratch_sums;
  uint32_t chunks, padded_width;
};

TRINE_DEVICE const float* QueryRow(const AttentionArgs& args, uint32_t head, uint32_t token) {
  return reinterpret_cast<const float*>(args.q + head * args.q_head + token * args.q_token);
}

TRINE_DEVICE float* OutputRow(const AttentionArgs& args, uint32_t head, uint32_t token) {
  return reinterpret_cast<float*>(args.y + head * args.y_head + token * args.y_token);
}

// A token's sequence, or -1, and the positions [begin, end) that the token sees.
struct Seen {
  int32_t sequence = -1, begin = 0, end = 0;

  TRINE_DEVICE bool nothing() const { return begin >= end; }
};

TRINE_DEVICE Seen SeenIn(const AttentionArgs& args, int32_t token, int32_t sequence) {
  Seen seen;
  seen.sequence = sequence;
  const int32_t length = args.kv_lengths[sequence];
  const int32_t position = length - args.q_offsets[sequence + 1] + token;
  seen.end = args.causal && position + 1 < length ? position + 1 : length;
  if (args.window > 0 && position >= args.window) seen.begin = position - args.window + 1;
  return seen;
}

// Returns the sequence of a token, or -1. All 32 lanes of a group must call it.
TRINE_DEVICE int32_t SequenceOf(const AttentionArgs& args, int32_t token) {
  constexpr int32_t kNone = 0x7fffffff;
  const int32_t lane = static_cast<int32_t>(ThreadX() % kLanes);
  const auto sequences = static_cast<int32_t>(args.sequences);
  for (int32_t first = 0; first < sequences; first += kLanes) {
    const int32_t s = first + lane;
    int32_t found = kNone;
    if (s < sequences && token >= args.q_offsets[s] && token < args.q_offsets[s + 1]) found = s;
    for (int mask = 1; mask < kLanes; mask *= 2) {
      const int32_t other = LaneXor(found, mask);
      found = other < found ? other : found;
    }
    if (found != kNone) return found;
  }
  return -1;
}

TRINE_DEVICE Seen SeenBy(const AttentionArgs& args, int32_t token) {
  const int32_t sequence = SequenceOf(args, token);
  return sequence < 0 ? Seen{} : SeenIn(args, token, sequence);
}

// Returns the offset of a position's row, in bytes from the cache's data.
TRINE_DEVICE int64_t CacheRowAt(const CacheArgs& cache, int32_t block, uint32_t inside,
                                uint32_t kv_head) {
  return block * cache.block + inside * cache.position + kv_head * cache.head;
}

// Prefetches a row, so that all rows of a block's chunk are loaded at the same time.
TRINE_DEVICE void PrefetchRow(const CacheArgs& cache, int64_t row) {
  for (uint32_t i = 0; i < cache.row_bytes; i += 128) Prefetch(cache.data + row + i);
}

TRINE_DEVICE float ScoreOf(const AttentionArgs& args, float dot) {
  const float score = Canon(dot * args.scale);
  if (args.softcap == 0.0f) return score;
  // Like reference::SoftcapValue, with the platform's reciprocal.
  const float x = Canon(score * args.inverse_cap);
  const float tanh = Canon(1.0f - 2.0f * Recip(1.0f + Exp(x + x)));
  return Canon(args.softcap * tanh);
}

TRINE_DEVICE float Larger(float a, float b) { return a < b ? b : a; }

// The maximum and the sum of the chunks joined so far.
struct Joined {
  float m, l;
};
struct JoinWeights {
  float before, chunk;
};

TRINE_DEVICE JoinWeights Join(float chunk_m, float chunk_l, Joined* state) {
  const float m = Larger(state->m, chunk_m);
  const JoinWeights weights = {Exp(state->m - m), Exp(chunk_m - m)};
  state->l = Canon(state->l * weights.before) + Canon(chunk_l * weights.chunk);
  state->m = m;
  return weights;
}

TRINE_DEVICE float JoinValue(float before, float chunk, JoinWeights weights) {
  return Canon(before * weights.before) + Canon(chunk * weights.chunk);
}

// Finishes a row's values: joins the sink, which is like a last chunk without values, and divides
// by the sum.
struct Finish {
  float sink_weight, inverse_l;

  TRINE_DEVICE float operator()(const AttentionArgs& args, float o) const {
    if (args.sinks != nullptr) o = Canon(o * sink_weight);
    return Canon(o * inverse_l);
  }
};

TRINE_DEVICE Finish FinishOf(const AttentionArgs& args, uint32_t head, Joined state) {
  Finish finish = {1.0f, 0.0f};
  if (args.sinks != nullptr) finish.sink_weight = Join(args.sinks[head], 1.0f, &state).before;
  finish.inverse_l = Recip(state.l);
  return finish;
}

// Writes values i to i + 3 of a row of y, and quantises them. All 32 lanes of a group must call it;
// lanes without `ours` write nothing. If y is quantised, eight neighbouring lanes must have the
// values of one block.
TRINE_DEVICE void PutOutput(const AttentionArgs& args, uint32_t head, uint32_t token, uint32_t i,
                            const float (&v)[4], bool ours) {
  if (ours && args.y != nullptr) {
    float* row = OutputRow(args, head, token);
    for (uint32_t k = 0; k < 4; ++k) {
      if (i + k < args.v.width) row[i + k] = v[k];
    }
  }
  if (args.quantized.values == nullptr) return;
  QuantizeBlock(args.quantized, Float4{v[0], v[1], v[2], v[3]}, token,
                (head * args.v.width + i) / 32, i / 4 % 8, ours);
}

// Returns the launch that attends rows to one form of cache: by tiles, or in blocks of `heads`
// heads. `groups`: groups of 32 elements.
template <CacheForm kForm>
Launch RowsLaunch(bool tiles, uint32_t heads, uint32_t groups, const AttentionArgs& args,
                  uint32_t chunks);

// Returns the launch that joins the chunks that blocks of attention have left in scratch.
Launch JoinLaunch(const AttentionArgs& args);

// Positions [begin, end) of a chunk, counted from its first position, `first`.
struct ChunkRange {
  int32_t first, begin, end;
};

TRINE_DEVICE ChunkRange ChunkOf(int32_t chunk, int32_t begin, int32_t end) {
  const int32_t first = chunk * kChunk;
  return {first, begin > first ? begin - first : 0, end - first < kChunk ? end - first : kChunk};
}

// Finds the rows of a chunk, with a thread for each of the 256 positions. A position that is not
// seen gets the row of a position that is: the row is read, and has a probability of 0.
template <class Shared>
TRINE_DEVICE void FindRows(const AttentionArgs& args, int32_t sequence, uint32_t kv_head,
                           const ChunkRange& range, Shared* shared) {
  const auto t = static_cast<int32_t>(ThreadX());
  const bool seen = t >= range.begin && t < range.end;
  const auto position = static_cast<uint32_t>(range.first + (seen ? t : range.begin));
  const int32_t block =
      args.block_table[sequence * args.table_sequence + position / args.block_positions];
  const uint32_t inside = position % args.block_positions;
  const int64_t k_row = CacheRowAt(args.k, block, inside, kv_head);
  const int64_t v_row = CacheRowAt(args.v, block, inside, kv_head);
  if (seen) {
    PrefetchRow(args.k, k_row);
    PrefetchRow(args.v, v_row);
  }
  shared->k_row[t] = k_row;
  shared->v_row[t] = v_row;
}

}  // namespace trine::hip
