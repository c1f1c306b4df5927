// Refuses every op of a graph with one op that it does not know.
#include "tests/plugins/sound_backend.h"

static trine_status Query(trine_device* device, const trine_graph* graph, uint32_t op,
                          const int64_t* params, trine_op_support* out, trine_error* err) {
  for (uint32_t i = 0; i < graph->n_ops; ++i) {
    if (trine::sdk::At(graph->ops, graph->op_stride, i).kind > TRINE_OP_TOP_K) {
      return trine::sdk::Fail(err, TRINE_INVALID_ARGUMENT, "the graph holds an unknown op");
    }
  }
  return sound::OpQuery(device, graph, op, params, out, err);
}
static void Change(trine_plugin& t) { t.op_query = Query; }
TRINE_FIXTURE(Change)
