// Finds no device, like a GPU's plugin on a machine without the GPU.
#include "tests/plugins/sound_backend.h"

static uint32_t Count(trine_backend*) { return 0; }
static trine_status Info(trine_backend*, uint32_t, trine_device_info*, trine_error* err) {
  return trine::sdk::Fail(err, TRINE_NOT_FOUND, "there is no device");
}
static trine_status Open(trine_backend*, uint32_t, trine_device**, trine_error* err) {
  return trine::sdk::Fail(err, TRINE_NOT_FOUND, "there is no device");
}
static void Change(trine_plugin& t) {
  t.device_count = Count;
  t.device_info = Info;
  t.device_open = Open;
}
TRINE_FIXTURE(Change)
