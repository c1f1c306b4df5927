// Never returns from open, as with a wedged driver.
#include <unistd.h>

#include "tests/plugins/sound_backend.h"

static trine_status Open(const trine_host*, const char*, trine_backend**, trine_error*) {
  for (;;) pause();
}
static void Change(trine_plugin& t) { t.open = Open; }
TRINE_FIXTURE(Change)
