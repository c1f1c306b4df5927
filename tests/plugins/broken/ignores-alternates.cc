// Always runs on the first alternate.
#include "tests/plugins/sound_backend.h"

static trine_status PlanRun(trine_plan* plan, const trine_run_args* in, trine_error* err) {
  trine_run_args args = trine::sdk::ReadIn(in);
  args.struct_size = sizeof(args);
  args.n_alternates = 0;
  return sound::PlanRun(plan, &args, err);
}
static void Change(trine_plugin& t) { t.plan_run = PlanRun; }
TRINE_FIXTURE(Change)
