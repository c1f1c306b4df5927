// Sets a timeline to any value that it is given.
#include <map>

#include "tests/plugins/sound_backend.h"

// Keeps the values itself: the sound timeline would refuse.
static std::map<trine_timeline*, uint64_t>& Values() {
  static std::map<trine_timeline*, uint64_t> values;
  return values;
}
static trine_status Create(trine_device* device, uint64_t initial, trine_timeline** out,
                           trine_error* err) {
  const trine_status status = sound::TimelineCreate(device, initial, out, err);
  if (status == TRINE_OK) Values()[*out] = initial;
  return status;
}
static trine_status Signal(trine_timeline* timeline, uint64_t value, trine_error*) {
  Values()[timeline] = value;
  timeline->timeline.Signal(value, nullptr);
  return TRINE_OK;
}
static trine_status Query(trine_timeline* timeline, uint64_t* value, trine_error*) {
  *value = Values()[timeline];
  return TRINE_OK;
}
static void Destroy(trine_timeline* timeline) {
  Values().erase(timeline);
  sound::TimelineDestroy(timeline);
}
static void Change(trine_plugin& t) {
  t.timeline_create = Create;
  t.timeline_signal = Signal;
  t.timeline_query = Query;
  t.timeline_destroy = Destroy;
}
TRINE_FIXTURE(Change)
