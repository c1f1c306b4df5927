// Lets an exception out of a worker function.
#include "tests/plugins/sound_backend.h"

static void Work(void*, uint32_t worker, uint32_t workers) {
  if (worker + 1 == workers) throw 42;
}
static trine_status Run(trine_plan* plan, const trine_run_args*, trine_error*) {
  const trine_host& host = plan->device->backend->host;
  return host.parallel_run(host.self, Work, nullptr);
}
static void Change(trine_plugin& t) { t.plan_run = Run; }
TRINE_FIXTURE(Change)
