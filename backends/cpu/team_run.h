// One run of a plan's steps by the host's team, its operands resolved.
#ifndef TRINE_BACKENDS_CPU_TEAM_RUN_H_
#define TRINE_BACKENDS_CPU_TEAM_RUN_H_

#include <cstdint>
#include <vector>

#include "backends/cpu/access.h"
#include "backends/cpu/op_run.h"
#include "backends/cpu/work_cursors.h"

namespace trine::cpu {

struct BoundCall {
  OpFunction function = nullptr;  // of the chain's split
  OpCall call;                    // points into the plan's views
  const char* name = nullptr;
  uint64_t timed_ns = 0;  // worker 0's, of a step of a run that is timed
};

struct BoundChain {
  Split split = Split::kShares;
  int64_t columns = 0;            // kColumns: parts there are
  const int64_t* rows = nullptr;  // kRows: likewise, resolved for the run
  uint64_t weight_bytes = 0;      // of matrix products among the calls
  std::vector<BoundCall> calls;

  int64_t Parts(uint32_t workers) const;
};

struct BoundStep {
  std::vector<BoundChain> chains;
  bool big = false;
};

class TeamRun {
 public:
  TeamRun(const trine_host& host, std::vector<BoundStep> steps);

  // One parallel region; the host's status when it has none to give.
  trine_status Run();

 private:
  template <bool kTimed>
  static void Work(void* self, uint32_t worker, uint32_t workers);

  const trine_host& host_;
  std::vector<BoundStep> steps_;
  WorkCursors cursors_;
  uint32_t turn_ = 0;       // of the cursors, used so far
  uint32_t big_steps_ = 0;  // turns of a run
};

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_TEAM_RUN_H_
