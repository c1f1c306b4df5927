// Runs a worker's share of attention. Divides the work by rows if there are enough of them, else
// into pieces of one token, one kv head and one chunk of positions
// (kernels/cpu/levels/kernel_table.h).
//
// Pieces need no barrier before they are joined: a counter per token and kv head says how many are
// done, and the worker that does the last one joins them all. Which worker that is changes no bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "backends/cpu/op_run.h"
#include "trine/backend_sdk.h"

namespace trine::cpu {

// The memory for cutting attention into pieces. The attention ops of a plan use it one by one.
struct AttentionRoom {
  float* partials = nullptr;  // in the plan's scratch
  int64_t partial_floats = 0;
  // Pieces done, by token and kv head. All are zero between two ops: the join resets them.
  std::vector<std::atomic<uint32_t>> done;
};

// The memory that an op asks for, at the parameters' maxima. It is 0 if pieces would gain nothing,
// and less than the op could use if that would be too much memory.
struct AttentionNeed {
  int64_t partial_floats = 0;
  int64_t pairs = 0;  // pairs of a token and a kv head
};
AttentionNeed NeedOfAttention(const sdk::Graph& graph, const sdk::Op& op,
                              const std::vector<int64_t>& params);

// Runs a share of attention. Shares write to disjoint memory, or to the room's partial results.
void RunAttention(const OpCall& call, Share share);

}  // namespace trine::cpu
