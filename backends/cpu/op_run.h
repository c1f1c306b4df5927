// Runs one worker's share of one op of a plan. The op's operands are already resolved for the run.
#pragma once

#include <cstdint>
#include <string>

#include "backends/cpu/way_trials.h"
#include "kernels/cpu/levels/kernel_table.h"
#include "trine/backend_sdk.h"

namespace trine::cpu {

// The number of features of a matrix product that stay together: a cache line of results, so that
// no two workers write to one line, and a whole number of the kernels' tiles.
inline constexpr int64_t kFeatureMultiple = 16;

// Shares [worker, worker + count) of `workers` shares. A share need not belong to a thread: work
// may be cut into more shares than there are threads. Then a thread takes `count` of them at a
// time.
struct Share {
  uint32_t worker = 0;
  uint32_t workers = 1;
  uint32_t count = 1;

  // Returns this share's part of `units`, cut at multiples of `multiple`.
  reference::Range Of(int64_t units, int64_t multiple = 1) const;
};

struct AttentionRoom;

// An op with its operands for one run.
struct OpCall {
  static constexpr size_t kMaxInputs = 8;
  static constexpr size_t kMaxOutputs = 2;

  const sdk::Op* op = nullptr;
  const cpu_kernels::KernelTable* kernels = nullptr;
  cpu_kernels::Caches caches;
  ShapeTrials* ways = nullptr;    // the trials of a product's shape; null: it goes Way::kUsual
  const bool* is_warm = nullptr;  // true once the plan has been run, so that times mean something
  const reference::View* in[kMaxInputs] = {};  // null: absent
  const reference::View* out[kMaxOutputs] = {};
  cpu_kernels::ActivationChunk* chunks = nullptr;  // in[1] quantised, for quantised weights
  AttentionRoom* room = nullptr;                   // for attention; null: not cut into pieces
};

// Returns "" if the op can be run here, else why not. The op must have passed sdk::CheckOp.
std::string WhyNotSupported(const sdk::Graph& graph, size_t op);

// Runs one worker's share of an op. Shares write to disjoint memory, and the result has the same
// bits for any number of workers. FindOpFunction returns null for a kind that sdk::CheckOp refuses.
using OpFunction = void (*)(const OpCall& call, Share share);
OpFunction FindOpFunction(uint32_t kind);

// Runs one worker's share of quantising the activations of a matmul or moe_matmul.
void QuantizeShare(const OpCall& call, Share share);

// Returns the function that runs a share of an op cut by columns: by features, or by heads, for all
// tokens. A worker that takes the same share of several such ops in a row does not wait for other
// workers in between. For ops that AccessesOf can split by columns. Cuts features at multiples of
// kFeatureMultiple.
OpFunction FindColumnFunction(uint32_t kind, bool by_heads);

}  // namespace trine::cpu
