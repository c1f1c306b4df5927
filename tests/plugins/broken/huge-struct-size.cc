// Claims a table longer than it is.
#include "tests/plugins/sound_backend.h"

static void Change(trine_plugin& t) { t.struct_size = sizeof(t) + 64; }
TRINE_FIXTURE(Change)
