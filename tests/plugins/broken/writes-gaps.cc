// Writes rows of a view as if they followed each other without gaps.
#include "tests/plugins/sound_backend.h"

static trine_status PlanCreate(trine_device* device, const trine_plan_desc* in, trine_plan** out,
                               trine_error* err) {
  const trine_status status = sound::PlanCreate(device, in, out, err);
  if (status != TRINE_OK) return status;
  for (const trine::sdk::Op& op : (*out)->graph.ops) {
    trine_tensor& y = (*out)->graph.tensors[op.out[0]];
    for (int64_t& stride : y.strides) stride = 0;
  }
  return status;
}
static void Change(trine_plugin& t) { t.plan_create = PlanCreate; }
TRINE_FIXTURE(Change)
