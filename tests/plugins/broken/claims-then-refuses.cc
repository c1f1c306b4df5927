// Claims softcap, but can't make a plan for it.
#include "tests/plugins/sound_backend.h"

static trine_status OpQuery(trine_device* device, const trine_graph* graph, uint32_t op,
                            const int64_t* params, trine_op_support* out, trine_error* err) {
  const trine_status status = sound::OpQuery(device, graph, op, params, out, err);
  if (status == TRINE_OK &&
      trine::sdk::At(graph->ops, graph->op_stride, op).kind == TRINE_OP_SOFTCAP) {
    out->support = TRINE_SUPPORT_EXACT;
  }
  return status;
}
static void Change(trine_plugin& t) { t.op_query = OpQuery; }
TRINE_FIXTURE(Change)
