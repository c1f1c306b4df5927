// Never returns from plan_run.
#include <unistd.h>

#include "tests/plugins/sound_backend.h"

static trine_status Run(trine_plan*, const trine_run_args*, trine_error*) {
  for (;;) pause();
}
static void Change(trine_plugin& t) { t.plan_run = Run; }
TRINE_FIXTURE(Change)
