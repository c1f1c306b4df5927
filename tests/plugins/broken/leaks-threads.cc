// Starts a thread for each device and never ends it.
#include <unistd.h>

#include <thread>

#include "tests/plugins/sound_backend.h"

static trine_status DeviceOpen(trine_backend* backend, uint32_t index, trine_device** out,
                               trine_error* err) {
  return trine::sdk::Guard(err, [&] {
    std::thread([] {
      for (;;) pause();
    }).detach();
    return sound::DeviceOpen(backend, index, out, err);
  });
}
static void Change(trine_plugin& t) { t.device_open = DeviceOpen; }
TRINE_FIXTURE(Change)
