// Opens a file for each backend and never closes it.
#include <fcntl.h>

#include "tests/plugins/sound_backend.h"

static trine_status Open(const trine_host* host, const char* options, trine_backend** out,
                         trine_error* err) {
  open("/dev/null", O_RDONLY | O_CLOEXEC);
  return sound::Open(host, options, out, err);
}
static void Change(trine_plugin& t) { t.open = Open; }
TRINE_FIXTURE(Change)
