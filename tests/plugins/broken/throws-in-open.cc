// Lets an exception out of open.
#include <stdexcept>

#include "tests/plugins/sound_backend.h"

static trine_status Open(const trine_host*, const char*, trine_backend**, trine_error*) {
  throw std::runtime_error("no driver");
}
static void Change(trine_plugin& t) { t.open = Open; }
TRINE_FIXTURE(Change)
