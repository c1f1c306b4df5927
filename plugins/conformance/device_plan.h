// A graph on a device: a buffer for each slot and alternate, filled from images of the slots in
// host memory, and the plan over them.
#ifndef TRINE_PLUGINS_CONFORMANCE_DEVICE_PLAN_H_
#define TRINE_PLUGINS_CONFORMANCE_DEVICE_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "plugins/conformance/graph_spec.h"
#include "plugins/conformance/session.h"

namespace trine::conformance {

// What a test graph works on: one image for each slot; those of TEMP slots stay empty.
using Images = std::vector<Bytes>;

struct PlanOptions {
  size_t padding = 0;         // bytes of garbage behind each struct and array element
  bool scribble = false;      // destroy the graph once the plan is made
  bool share_buffer = false;  // all bindings are windows of one buffer
};

struct RunOptions {
  size_t padding = 0;
  std::vector<uint32_t> alternates;  // by slot; empty = none given
  std::vector<trine_point> waits;
  std::vector<trine_point> signals;
};

// What op_query says of an op. `answer` is its status.
trine_op_support QueryOp(Trial& trial, Session& session, const GraphSpec& graph, uint32_t op,
                         Answer* answer);

class DevicePlan {
 public:
  // Null, with `answer` holding the refusal; other failures are noted in the trial.
  static std::unique_ptr<DevicePlan> TryCreate(Trial& trial, Session& session,
                                               const GraphSpec& graph, const Images& images,
                                               const PlanOptions& options, Answer* answer);
  // Null with the failure noted.
  static std::unique_ptr<DevicePlan> Create(Trial& trial, Session& session, const GraphSpec& graph,
                                            const Images& images, const PlanOptions& options = {});

  Answer Run(Trial& trial, const std::vector<int64_t>& params, const RunOptions& options = {});
  // Moves all slots' images to or from the buffers of one alternate (of slots with fewer: 0). An
  // empty image leaves its slot's buffer alone.
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
  PlanPtr plan_;  // last: it goes before the buffers it is bound to
};

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_DEVICE_PLAN_H_
