// Keeps 24 bytes of each timeline, in a list: a search for lost memory would not find them.
#include "tests/plugins/sound_backend.h"

struct Kept {
  Kept* next;
  uint64_t words[2];
};
static_assert(sizeof(Kept) == 24);
static Kept* kept = nullptr;

static void Destroy(trine_timeline* timeline) {
  kept = new Kept{kept, {}};
  sound::TimelineDestroy(timeline);
}
static void Change(trine_plugin& t) { t.timeline_destroy = Destroy; }
TRINE_FIXTURE(Change)
