// Nothing is wrong with it.
#include "tests/plugins/sound_backend.h"

static void Keep(trine_plugin&) {}
TRINE_FIXTURE(Keep)
