// Ends the process with success when it is asked to run.
#include <unistd.h>

#include "tests/plugins/sound_backend.h"

static trine_status Run(trine_plan*, const trine_run_args*, trine_error*) { _exit(0); }
static void Change(trine_plugin& t) { t.plan_run = Run; }
TRINE_FIXTURE(Change)
