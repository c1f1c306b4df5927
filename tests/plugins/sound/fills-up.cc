// Keeps something of each timeline up to a limit, like a cache that fills up late: not a leak.
#include "tests/plugins/sound_backend.h"

static void* kept[1020];
static int n_kept = 0;

static void Destroy(trine_timeline* timeline) {
  if (n_kept < 1020) kept[n_kept++] = std::malloc(100);
  sound::TimelineDestroy(timeline);
}
static void Change(trine_plugin& t) { t.timeline_destroy = Destroy; }
TRINE_FIXTURE(Change)
