// A graph's ops as the steps a team of workers takes, with a barrier between one step and the next,
// and the activations of quantised matrix products quantised once for all that read them.
//
// A step holds chains that do not touch each other's memory. The calls of a chain depend on one
// another only inside a part of their work (the rows of a token; the features of a head): a worker
// that takes a part of the chain does all its calls for that part, and waits for nobody.
#ifndef TRINE_BACKENDS_CPU_SCHEDULE_H_
#define TRINE_BACKENDS_CPU_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/access.h"
#include "backends/cpu/attention_run.h"
#include "trine/backend_sdk.h"

namespace trine::cpu {

struct Call {
  enum class Kind {
    kOp,
    kQuantize,  // input 1 of the op, for it and the ops that read the same view alike
  };
  Kind kind = Kind::kOp;
  uint32_t op = 0;
  // Where the op's quantised activations lie, in bytes from the schedule's scratch; kNoActivations
  // where it has none.
  uint64_t activations = 0;
};
inline constexpr uint64_t kNoActivations = UINT64_MAX;

struct Chain {
  Split split = Split::kShares;
  int64_t unit = 0;           // kColumns: values of a row that stay together
  int64_t values = 0;         // kColumns: of a row
  uint32_t row_tensor = 0;    // kRows: the outermost dimension of this one says how many there are
  uint64_t weight_bytes = 0;  // that a matrix product among the calls reads, at least once
  std::vector<Call> calls;
};

struct Step {
  std::vector<Chain> chains;
  bool big = false;  // worth sharing out in small portions: a matrix product, or attention
};

struct Schedule {
  std::vector<Step> steps;
  uint64_t scratch_bytes = 0;  // for what is below, at the parameters' maxima
  // For the partial results of attention, which lie behind the quantised activations.
  uint64_t partials = 0;  // bytes from the schedule's scratch
  AttentionNeed attention;
};

struct ScheduleFor {
  uint32_t workers = 1;  // of the team
  // False: matrix products read their activations themselves, as the reference's do, so that
  // nothing is quantised beforehand.
  bool quantizes = true;
  // True: products with experts want their activations in another order than the others do.
  bool experts_apart = false;
};

// The graph has passed sdk::CopyGraph and sdk::CheckOp. "" or why it can't be scheduled.
std::string MakeSchedule(const sdk::Graph& graph, const ScheduleFor& whom, Schedule* schedule);

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_SCHEDULE_H_
