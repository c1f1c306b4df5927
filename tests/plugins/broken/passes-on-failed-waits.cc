// Without signals, returns the failure of a wait as its own.
#include "tests/plugins/sound_backend.h"

static trine_status Run(trine_plan* plan, const trine_run_args* in, trine_error* err) {
  const trine_sync sync = trine::sdk::ReadIn(in).sync;
  for (uint32_t i = 0; sync.n_signals == 0 && i < sync.n_waits; ++i) {
    const trine_point p = trine::sdk::At(sync.waits, sync.point_stride, i);
    const trine_status status = sound::TimelineWait(p.timeline, p.value, UINT64_MAX, err);
    if (status != TRINE_OK) return status;
  }
  return sound::PlanRun(plan, in, err);
}
static void Change(trine_plugin& t) { t.plan_run = Run; }
TRINE_FIXTURE(Change)
