// Aborts when it is asked for its table.
#include "tests/plugins/sound_backend.h"

static void Change(trine_plugin&) { std::abort(); }
TRINE_FIXTURE(Change)
