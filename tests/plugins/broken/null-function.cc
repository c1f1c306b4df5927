// Leaves out a required function.
#include "tests/plugins/sound_backend.h"

static void Change(trine_plugin& t) { t.timeline_wait = nullptr; }
TRINE_FIXTURE(Change)
