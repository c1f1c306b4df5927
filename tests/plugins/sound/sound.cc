// A plugin without a fault.
#include "tests/plugins/sound_backend.h"

static void Keep(trine_plugin&) {}
TRINE_FIXTURE(Keep)
