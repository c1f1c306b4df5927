// Takes the graph's arrays for plain C arrays.
#include "tests/plugins/sound_backend.h"

static trine_status PlanCreate(trine_device* device, const trine_plan_desc* in, trine_plan** out,
                               trine_error* err) {
  trine_graph graph = trine::sdk::ReadIn(in->graph);
  graph.tensor_stride = sizeof(trine_tensor);
  graph.struct_size = sizeof(graph);
  trine_plan_desc desc = trine::sdk::ReadIn(in);
  desc.struct_size = sizeof(desc);
  desc.graph = &graph;
  return sound::PlanCreate(device, &desc, out, err);
}
static void Change(trine_plugin& t) { t.plan_create = PlanCreate; }
TRINE_FIXTURE(Change)
