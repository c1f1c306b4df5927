// Never frees the memory of buffers.
#include "tests/plugins/sound_backend.h"

static void Free(trine_buffer* buffer) {
  buffer->data.release();
  delete buffer;
}
static void Change(trine_plugin& t) { t.buffer_free = Free; }
TRINE_FIXTURE(Change)
