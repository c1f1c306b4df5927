// Attention cut into pieces of one token, kv head and chunk of positions, for tokens that are few
// and see many positions: more workers than kv heads then find something to do. Each piece leaves
// the partial results of its heads; they are joined, in the contract's order, when all are there.

#ifndef TRINE_KERNELS_CPU_ATTENTION_PIECES_H_
#define TRINE_KERNELS_CPU_ATTENTION_PIECES_H_

#include <cstdint>

namespace trine::cpu_kernels {

constexpr int64_t kAttentionChunk = 256;  // positions, as docs/numerics.md has them

struct AttentionPieces {
  // A piece is (token * kv_heads + kv_head) * chunks + i: chunk i of those the token sees, of which
  // it may have fewer.
  int64_t chunks;
  // Of row r = token * heads + head: chunks * PartialFloats(v_width) from r times that.
  float* partials;
};

// The partial results of one head and chunk: maximum and sum, then, from a cache line of their own,
// the weighted values.
constexpr int64_t kPartialHeader = 16;
static constexpr int64_t PartialFloats(int64_t v_width) {
  return kPartialHeader + (v_width + 15) / 16 * 16;
}

// As many chunks as a token can meet that sees at most `positions`, all of a sequence or, with a
// window (0: none), its last ones. Unless it is causal a token sees what lies behind it too, window
// or not.
static constexpr int64_t ChunksSeen(int64_t positions, int64_t window, bool causal) {
  const int64_t all = (positions + kAttentionChunk - 1) / kAttentionChunk;
  if (window == 0 || !causal) return all;
  const int64_t within = (window - 2 + kAttentionChunk) / kAttentionChunk + 1;
  return within < all ? within : all;
}

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_ATTENTION_PIECES_H_
