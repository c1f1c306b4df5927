// Accepts any option.
#include "tests/plugins/sound_backend.h"

static trine_status Open(const trine_host* host, const char*, trine_backend** out,
                         trine_error* err) {
  return sound::Open(host, "", out, err);
}
static void Change(trine_plugin& t) { t.open = Open; }
TRINE_FIXTURE(Change)
