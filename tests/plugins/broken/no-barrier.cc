// Starts an op before all workers are done with the one before.
#include "tests/plugins/sound_backend.h"

static void Change(trine_plugin&) { sound::skip_barrier = true; }
TRINE_FIXTURE(Change)
