// Packs caches and never unpacks them.
#include "tests/plugins/sound_backend.h"

static trine_status Convert(trine_device* device, const trine_layout_convert_args* in,
                            trine_error* err) {
  if (trine::sdk::ReadIn(in).direction == TRINE_LAYOUT_UNPACK) {
    return trine::sdk::Fail(err, TRINE_UNIMPLEMENTED, "there is no way back");
  }
  return sound::LayoutConvert(device, in, err);
}
static void Change(trine_plugin& t) { t.layout_convert = Convert; }
TRINE_FIXTURE(Change)
