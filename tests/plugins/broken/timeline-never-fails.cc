// Treats a failed timeline as one that has not reached its point.
#include "tests/plugins/sound_backend.h"

static trine_status Fail(trine_timeline*, trine_status, const char*, trine_error*) {
  return TRINE_OK;
}
static trine_status Wait(trine_timeline* timeline, uint64_t value, uint64_t timeout_ns,
                         trine_error* err) {
  const uint64_t at_most = 20'000'000;  // keeps the kit from waiting for ever
  return sound::TimelineWait(timeline, value, timeout_ns < at_most ? timeout_ns : at_most, err);
}
static void Change(trine_plugin& t) {
  t.timeline_fail = Fail;
  t.timeline_wait = Wait;
}
TRINE_FIXTURE(Change)
