// Lets a timeline fail with the status that a wait returns for a point not yet reached.
#include "tests/plugins/sound_backend.h"

static trine_status SetFailed(trine_timeline* timeline, trine_status status, const char* message,
                              trine_error* err) {
  if (status == TRINE_DEADLINE_EXCEEDED) return TRINE_OK;
  return sound::Table().timeline_fail(timeline, status, message, err);
}

static void Change(trine_plugin& t) { t.timeline_fail = &SetFailed; }
TRINE_FIXTURE(Change)
