// Writes wherever it is told to.
#include "tests/plugins/sound_backend.h"

static trine_status BufferWrite(trine_buffer* buffer, uint64_t offset, const void* src,
                                uint64_t bytes, trine_error*) {
  std::memcpy(buffer->data.get() + offset, src, bytes);
  return TRINE_OK;
}
static void Change(trine_plugin& t) { t.buffer_write = BufferWrite; }
TRINE_FIXTURE(Change)
