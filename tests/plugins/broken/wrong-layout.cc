// Leaves out a row when it packs many at once.
#include "tests/plugins/sound_backend.h"

static trine_status Convert(trine_device* device, const trine_layout_convert_args* in,
                            trine_error* err) {
  trine_layout_convert_args args = trine::sdk::ReadIn(in);
  args.struct_size = sizeof(args);
  if (args.direction == TRINE_LAYOUT_PACK && args.row_end - args.row_begin > 4) args.row_begin += 1;
  return sound::LayoutConvert(device, &args, err);
}
static void Change(trine_plugin& t) { t.layout_convert = Convert; }
TRINE_FIXTURE(Change)
