// One op of a plan, with its operands resolved for a run, and one worker's share of it.
#ifndef TRINE_BACKENDS_CPU_OP_RUN_H_
#define TRINE_BACKENDS_CPU_OP_RUN_H_

#include <cstdint>
#include <string>

#include "backends/cpu/way_trials.h"
#include "kernels/cpu/kernel_table.h"
#include "trine/backend_sdk.h"

namespace trine::cpu {

// Features of a matrix product that stay together: a cache line of results, which no two workers
// then share, and a whole number of the kernels' tiles.
inline constexpr int64_t kFeatureMultiple = 16;

// Worker `worker` of `workers`, who need not be threads: work is also shared out in smaller shares
// than there are threads, of which one takes `count` at a time.
struct Share {
  uint32_t worker = 0;
  uint32_t workers = 1;
  uint32_t count = 1;

  // This share's part of `units`, cut at multiples of `multiple`.
  reference::Range Of(int64_t units, int64_t multiple = 1) const;
};

struct AttentionRoom;

struct OpCall {
  static constexpr size_t kMaxInputs = 8;
  static constexpr size_t kMaxOutputs = 2;

  const sdk::Op* op = nullptr;
  const cpu_kernels::KernelTable* kernels = nullptr;
  cpu_kernels::Caches caches;
  ShapeTrials* ways = nullptr;    // for a matmul; null: it goes the usual way
  const bool* is_warm = nullptr;  // whether its plan has been run: times mean something then
  const reference::View* in[kMaxInputs] = {};  // null: absent
  const reference::View* out[kMaxOutputs] = {};
  cpu_kernels::ActivationChunk* chunks = nullptr;  // in[1] quantised, for quantised weights
  AttentionRoom* room = nullptr;                   // for attention, or null
};

// "" when the op, which keeps sdk::CheckOp's rules, can be run here, else why not.
std::string WhyNotSupported(const sdk::Graph& graph, size_t op);

// One worker's share of an op; the shares are disjoint in what they write, and the result has the
// same bits for any number of workers. Null for a kind that WhyNotSupported refuses.
using OpFunction = void (*)(const OpCall& call, Share share);
OpFunction FindOpFunction(uint32_t kind);

// One worker's share of quantising the activations of a matmul or moe_matmul.
void QuantizeShare(const OpCall& call, Share share);

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_OP_RUN_H_
