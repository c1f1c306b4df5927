// Has an invalid name.
#include "tests/plugins/sound_backend.h"

static void Change(trine_plugin& t) { t.name = "Bad Name!"; }
TRINE_FIXTURE(Change)
