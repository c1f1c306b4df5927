// One op of a plan, with its operands resolved for a run, and one worker's share of it.
#ifndef TRINE_BACKENDS_CPU_OP_RUN_H_
#define TRINE_BACKENDS_CPU_OP_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/reference/view.h"
#include "trine/backend_sdk.h"

namespace trine::cpu {

struct Operands {
  std::vector<reference::View> in;
  std::vector<bool> has;  // whether in[i] is there
  std::vector<reference::View> out;

  const reference::View* Optional(size_t i) const {
    return i < in.size() && has[i] ? &in[i] : nullptr;
  }
};

// "" when the op, which keeps sdk::CheckOp's rules, can be run here, else why not.
std::string WhyNotSupported(const sdk::Graph& graph, size_t op);

// Worker `worker` of `workers` does its share; the shares are disjoint in what they write, and the
// result has the same bits for any number of workers.
void RunShare(const sdk::Op& op, const Operands& operands, uint32_t worker, uint32_t workers);

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_OP_RUN_H_
