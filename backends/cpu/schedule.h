// Turns a graph's ops into the steps that a team of workers takes, with a barrier between steps.
// Quantises the activations of matrix products once for all products that read them.
//
// A step holds chains that do not touch each other's memory. The calls of a chain depend on one
// another only inside a part of their work (the rows of a token; the features of a head): a worker
// that takes a part of the chain does all its calls for that part without waiting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/access.h"
#include "backends/cpu/attention_run.h"
#include "trine/backend_sdk.h"

namespace trine::cpu {

// One thing that a chain does: an op, or the quantisation of activations.
struct Call {
  enum class Kind {
    kOp,
    kQuantize,  // quantises input 1 of the op, for all products that need it in the same form
  };
  Kind kind = Kind::kOp;
  uint32_t op = 0;
  // The offset of the op's quantised activations in the schedule's scratch, in bytes;
  // kNoActivations: the op has none.
  uint64_t activations = 0;
};
inline constexpr uint64_t kNoActivations = UINT64_MAX;

// Calls that a worker does one after the other for each part of their work.
struct Chain {
  Split split = Split::kShares;
  int64_t unit = 0;           // kColumns: how many values of a row stay together
  int64_t values = 0;         // kColumns: how many values a row has
  uint32_t row_tensor = 0;    // kRows: the tensor whose outermost dimension is the number of rows
  uint64_t weight_bytes = 0;  // the least that the matrix products among the calls read
  std::vector<Call> calls;
};

// Chains that may run at the same time. The team waits at a barrier after the step.
struct Step {
  std::vector<Chain> chains;
  bool big = false;  // true for matrix products and attention: worth cutting into small portions
};

// The steps of a graph, and the scratch that they need.
struct Schedule {
  std::vector<Step> steps;
  // Room for activations and partial results, at the parameters' maxima.
  uint64_t scratch_bytes = 0;
  // The offset of attention's partial results in the schedule's scratch, in bytes. They come after
  // the quantised activations.
  uint64_t partials = 0;
  AttentionNeed attention;
};

// The properties of the team and of its kernels that a schedule depends on.
struct ScheduleFor {
  uint32_t workers = 1;  // size of the team
  // False if matrix products read the activations themselves, as the reference's do. Then nothing
  // is quantised before them.
  bool quantizes = true;
  // True if products with experts need their activations in another order than other products.
  bool experts_apart = false;
};

// Returns "" or why the graph, which has passed sdk::CopyGraph and sdk::CheckOp, can't be
// scheduled.
std::string MakeSchedule(const sdk::Graph& graph, const ScheduleFor& whom, Schedule* schedule);

}  // namespace trine::cpu
