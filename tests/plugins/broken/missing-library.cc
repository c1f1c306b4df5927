// Is linked to a library that does not exist.
#include "tests/plugins/sound_backend.h"

extern "C" int trine_fixture_absent();

static void Change(trine_plugin& t) { t.numerics_version += trine_fixture_absent() == 1 ? 0 : 1; }
TRINE_FIXTURE(Change)
