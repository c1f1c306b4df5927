// What attention's kernels are told, and what they have in common.
#ifndef TRINE_KERNELS_HIP_ATTENTION_ARGS_H_
#define TRINE_KERNELS_HIP_ATTENTION_ARGS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/hip/gpu/device.h"
#include "kernels/hip/quantized.h"
#include "kernels/hip/tensor.h"

namespace trine::hip {

inline constexpr int32_t kChunk = 256;  // positions

// How the rows of both caches are read.
enum class CacheForm {
  kF32,
  kF16,
  kBf16,
  kQ8,
  kAny,  // element by element: types that differ, widths and places that are no whole vectors
};

struct CacheArgs {
  const std::byte* data;
  int64_t position, head, block;  // strides
  uint32_t width;
  uint32_t row_bytes;
  quant::Type type;
};

// What goes before the attention of one token, where its blocks do it (RotateStore).
struct NewRows {
  const float* k = nullptr;  // null: nothing does
  const float* v = nullptr;
  int64_t k_head = 0, v_head = 0;  // strides
  const float* cosines = nullptr;  // Rotation
  const int32_t* slot = nullptr;   // where in the caches
  uint32_t pairs = 0, slots = 0;   // there are
  bool halves = false;
};

struct AttentionArgs {
  const std::byte* q;
  int64_t q_head, q_token;
  CacheArgs k, v;
  const int32_t* block_table;
  int64_t table_sequence;  // in entries
  const int32_t* q_offsets;
  const int32_t* kv_lengths;
  const float* sinks;
  std::byte* y;
  int64_t y_head, y_token;
  QuantizedColumns quantized;
  NewRows before;
  bool early;  // no kernel writes the table, offsets, lengths, cosines or slot

  float scale, softcap, inverse_cap;
  int32_t window;  // 0: none
  bool causal;
  // A block does one chunk and leaves it in scratch; else all of them, and finishes its rows.
  bool split;
  uint32_t tokens, heads, group, sequences;
  uint32_t block_positions;
  uint32_t parts;  // of a group, or tiles of all tokens' groups: blocks of a kv head

  // Of each (token, head) and each of `chunks` chunks, from the first that the token sees: its
  // values, padded to whole vectors; behind all of these its maximum and its sum.
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

// A token's sequence, or -1; the positions it sees, none where begin >= end.
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

// The sequence of a token, by 32 lanes together.
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

// Where the row of a position begins, from the cache's data on.
TRINE_DEVICE int64_t CacheRowAt(const CacheArgs& cache, int32_t block, uint32_t inside,
                                uint32_t kv_head) {
  return block * cache.block + inside * cache.position + kv_head * cache.head;
}

// Asks for a row before it is read: a block's whole chunk is then under way at once.
TRINE_DEVICE void PrefetchRow(const CacheArgs& cache, int64_t row) {
  for (uint32_t i = 0; i < cache.row_bytes; i += 128) Prefetch(cache.data + row + i);
}

TRINE_DEVICE float ScoreOf(const AttentionArgs& args, float dot) {
  const float score = Canon(dot * args.scale);
  if (args.softcap == 0.0f) return score;
  // As reference::SoftcapValue, with the platform's reciprocal.
  const float x = Canon(score * args.inverse_cap);
  const float tanh = Canon(1.0f - 2.0f * Recip(1.0f + Exp(x + x)));
  return Canon(args.softcap * tanh);
}

TRINE_DEVICE float Larger(float a, float b) { return a < b ? b : a; }

// Of the chunks joined so far.
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

// What the end of a row does to its values: the sink, a last chunk without a value, and the sum.
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

// Puts values i to i + 3 of a row of y, and quantises them. All 32 lanes of a group call it, eight
// neighbours with one block where y is quantised.
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

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_ATTENTION_ARGS_H_
