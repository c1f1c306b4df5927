// Refuses every op, with a reason.
#include "tests/plugins/sound_backend.h"

static trine_status Query(trine_device*, const trine_graph*, uint32_t, const int64_t*,
                          trine_op_support* out, trine_error*) {
  trine_op_support support{};
  support.support = TRINE_SUPPORT_NO;
  std::strcpy(support.reason, "not today");
  trine::sdk::WriteOut(out, support);
  return TRINE_OK;
}
static trine_status Create(trine_device*, const trine_plan_desc*, trine_plan**, trine_error* err) {
  return trine::sdk::Fail(err, TRINE_UNIMPLEMENTED, "not today");
}
static void Change(trine_plugin& t) {
  t.op_query = Query;
  t.plan_create = Create;
}
TRINE_FIXTURE(Change)
