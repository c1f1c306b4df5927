// Looks into the host's graph again when it runs.
#include <map>

#include "tests/plugins/sound_backend.h"

static std::map<trine_plan*, const trine_graph*>& Kept() {
  static std::map<trine_plan*, const trine_graph*> kept;
  return kept;
}
static trine_status PlanCreate(trine_device* device, const trine_plan_desc* in, trine_plan** out,
                               trine_error* err) {
  const trine_graph* graph = in->graph;
  const trine_status status = sound::PlanCreate(device, in, out, err);
  if (status == TRINE_OK) Kept()[*out] = graph;
  return status;
}
static trine_status PlanRun(trine_plan* plan, const trine_run_args* args, trine_error* err) {
  if (Kept()[plan]->n_ops != plan->graph.ops.size()) {
    return trine::sdk::Fail(err, TRINE_INTERNAL, "the graph has changed");
  }
  return sound::PlanRun(plan, args, err);
}
static void PlanDestroy(trine_plan* plan) {
  Kept().erase(plan);
  sound::PlanDestroy(plan);
}
static void Change(trine_plugin& t) {
  t.plan_create = PlanCreate;
  t.plan_run = PlanRun;
  t.plan_destroy = PlanDestroy;
}
TRINE_FIXTURE(Change)
