// Names the hardware that it needs, which is absent unless the environment says otherwise.
#include "trine/sdk/hardware.h"

#include "tests/plugins/sound_backend.h"

TRINE_PLUGIN_HARDWARE("/dev/trine-fixture:$TRINE_FIXTURE_HARDWARE");

static void Keep(trine_plugin&) {}
TRINE_FIXTURE(Keep)
