// A graph's ops as the steps a team of workers takes, with barriers where one step's memory meets
// another's, and the activations of quantised matrix products quantised once for all that read
// them.
#ifndef TRINE_BACKENDS_CPU_SCHEDULE_H_
#define TRINE_BACKENDS_CPU_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/attention_run.h"
#include "trine/backend_sdk.h"

namespace trine::cpu {

struct Step {
  enum class Kind {
    kOp,
    kQuantize,  // input 1 of the op, for it and the ops that read the same view
  };
  Kind kind = Kind::kOp;
  uint32_t op = 0;
  bool barrier = false;  // all workers have finished all steps before
  // Where the op's quantised activations lie, in bytes from the schedule's scratch; kNoActivations
  // where it has none.
  uint64_t activations = 0;
};
inline constexpr uint64_t kNoActivations = UINT64_MAX;

struct Schedule {
  std::vector<Step> steps;
  uint64_t scratch_bytes = 0;  // for what is below, at the parameters' maxima
  // For the partial results of attention, which lie behind the quantised activations.
  uint64_t partials = 0;  // bytes from the schedule's scratch
  AttentionNeed attention;
};

// The graph has passed sdk::CopyGraph and sdk::CheckOp. "" or why it can't be scheduled.
std::string MakeSchedule(const sdk::Graph& graph, Schedule* schedule);

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_SCHEDULE_H_
