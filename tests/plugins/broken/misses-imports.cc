// Gives imported memory other pages on the device: copies from there read zeros.
#include "tests/plugins/sound_backend.h"

static trine_status CopyRun(trine_device* device, const trine_copy_args* in, trine_error* err) {
  const trine_status status = sound::CopyRun(device, in, err);
  const trine_copy_args args = trine::sdk::ReadIn(in);
  for (uint32_t i = 0; status == TRINE_OK && i < args.n_copies; ++i) {
    const trine_copy copy = trine::sdk::At(args.copies, args.copy_stride, i);
    if (copy.src.buffer == nullptr || !copy.src.buffer->imported) continue;
    std::memset(sound::EndOf(copy.dst, copy.bytes), 0, copy.bytes);
  }
  return status;
}
static void Change(trine_plugin& t) { t.copy_run = CopyRun; }
TRINE_FIXTURE(Change)
