// Never returns from a static constructor.
#include <unistd.h>

#include "tests/plugins/sound_backend.h"

[[gnu::constructor]] static void Hang() {
  for (;;) pause();
}
static void Keep(trine_plugin&) {}
TRINE_FIXTURE(Keep)
