// A worker's share of attention: rows while there are enough of them, else pieces of one token, kv
// head and chunk of positions (kernels/cpu/attention_pieces.h).
//
// Pieces need no barrier before they are joined: a counter per token and kv head says how many are
// done, and who does the last one joins them all. Which worker that is changes no bit.
#ifndef TRINE_BACKENDS_CPU_ATTENTION_RUN_H_
#define TRINE_BACKENDS_CPU_ATTENTION_RUN_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "backends/cpu/op_run.h"
#include "trine/backend_sdk.h"

namespace trine::cpu {

// What a plan's attention ops need to be cut into pieces; they take turns with it.
struct AttentionRoom {
  float* partials = nullptr;  // in the plan's scratch
  int64_t partial_floats = 0;
  // Pieces done, by token and kv head. Zero between two ops: who joins sets it back.
  std::vector<std::atomic<uint32_t>> done;
};

// The room that an op of a graph asks for at the parameters' maxima: none where it has nothing to
// gain, and not all it could use where that would be much memory.
struct AttentionNeed {
  int64_t partial_floats = 0;
  int64_t pairs = 0;  // of tokens and kv heads
};
AttentionNeed NeedOfAttention(const sdk::Graph& graph, const sdk::Op& op,
                              const std::vector<int64_t>& params);

void RunAttention(const OpCall& call, Share share);

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_ATTENTION_RUN_H_
