// Its table ends before the required functions do.
#include "tests/plugins/sound_backend.h"

static void Change(trine_plugin& t) { t.struct_size = TRINE_PLUGIN_REQUIRED_SIZE - 8; }
TRINE_FIXTURE(Change)
