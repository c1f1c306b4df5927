// Says what it imports, but not that it has tried.
#include "tests/plugins/sound_backend.h"

static trine_status DeviceInfo(trine_backend* backend, uint32_t index, trine_device_info* out,
                               trine_error* err) {
  trine_device_info info{};
  info.struct_size = sizeof(info);
  const trine_status status = sound::DeviceInfo(backend, index, &info, err);
  info.imports = TRINE_IMPORTS_WRITABLE;
  if (status == TRINE_OK) trine::sdk::WriteOut(out, info);
  return status;
}
static void Change(trine_plugin& t) { t.device_info = DeviceInfo; }
TRINE_FIXTURE(Change)
