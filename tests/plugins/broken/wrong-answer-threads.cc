// Is right only with one worker.
#include "tests/plugins/sound_backend.h"

static void OneUlp(float* y, int64_t n, uint32_t workers) {
  if (workers > 1) y[n - 1] = std::nextafter(y[n - 1], 1.0f);
}
static void Change(trine_plugin&) { sound::row_hook = OneUlp; }
TRINE_FIXTURE(Change)
