// Keeps what buffers held.
#include "tests/plugins/sound_backend.h"

static void Free(trine_buffer* buffer) {
  buffer->data.release();
  delete buffer;
}
static void Change(trine_plugin& t) { t.buffer_free = Free; }
TRINE_FIXTURE(Change)
