// Puts a graph on a device: makes a buffer for each slot and alternate, fills it from the slot's
// image in host memory, and creates the plan.
#pragma once

#include <memory>
#include <vector>

#include "plugins/conformance/cases/graph_spec.h"
#include "plugins/conformance/session.h"

namespace trine::conformance {

// The contents of a graph's slots, one image each. Images of TEMP slots stay empty.
using Images = std::vector<Bytes>;

// Ways of creating a plan that must make no difference.
struct PlanOptions {
  size_t padding = 0;         // bytes of garbage after each struct and array element
  bool scribble = false;      // overwrite the graph as soon as the plan is made
  bool share_buffer = false;  // all bindings are windows of one buffer
};

struct RunOptions {
  size_t padding = 0;
  std::vector<uint32_t> alternates;  // by slot; empty = none given
  std::vector<trine_point> waits;
  std::vector<trine_point> signals;
};

// The waits and signals of a run, in the ABI's form. Owns all it points to.
class PackedSync {
 public:
  explicit PackedSync(const RunOptions& options);
  const trine_sync& get() const { return sync_; }

 private:
  Bytes waits_, signals_;
  trine_sync sync_{};
};

// Calls copy_run with `padding` bytes of garbage after each element of `copies`.
Answer Copy(Trial& trial, Session& session, const std::vector<trine_copy>& copies,
            const trine_sync& sync = {}, size_t padding = 0);

// Calls op_query for an op. Sets *answer to the status and message of the call.
trine_op_support QueryOp(Trial& trial, Session& session, const GraphSpec& graph, uint32_t op,
                         Answer* answer);

// A plan with the buffers that it is bound to.
class DevicePlan {
 public:
  // Returns null if the device refuses the plan, with the refusal in *answer. Notes other failures
  // in the trial.
  static std::unique_ptr<DevicePlan> TryCreate(Trial& trial, Session& session,
                                               const GraphSpec& graph, const Images& images,
                                               const PlanOptions& options, Answer* answer);
  // Creates a plan that must be accepted. Returns null if it fails, and notes that in the trial.
  static std::unique_ptr<DevicePlan> Create(Trial& trial, Session& session, const GraphSpec& graph,
                                            const Images& images, const PlanOptions& options = {});

  Answer Run(Trial& trial, const std::vector<int64_t>& params, const RunOptions& options = {});
  // Upload copies all slots' images to the buffers of one alternate, Download copies them back.
  // A slot without that alternate uses alternate 0. Skips slots with an empty image.
  bool Upload(Trial& trial, const Images& images, uint32_t alternate = 0);
  bool Download(Trial& trial, Images* images, uint32_t alternate = 0);

  trine_plan* get() const { return plan_.get(); }

 private:
  struct Place {
    trine_buffer* buffer;
    uint64_t offset;
  };

  DevicePlan(Session& session, const GraphSpec& graph) : session_(session), graph_(graph) {}
  bool AllocateBuffers(Trial& trial, bool share);
  Answer Make(Trial& trial, const PlanOptions& options);
  const Place* PlaceOf(uint32_t slot, uint32_t alternate) const;

  Session& session_;
  GraphSpec graph_;
  std::vector<BufferPtr> buffers_;
  std::vector<std::vector<Place>> places_;  // by slot, then alternate
  BufferPtr scratch_;
  PlanPtr plan_;  // last: destroyed before the buffers it is bound to
};

}  // namespace trine::conformance
