// Gives its own layout a number that is reserved for public ones.
#include "tests/plugins/sound_backend.h"

static trine_status List(trine_device* device, const trine_graph* graph, uint32_t tensor,
                         trine_layout_list* out, trine_error* err) {
  const trine_status status = sound::LayoutList(device, graph, tensor, out, err);
  if (status == TRINE_OK && out->count != 0 && out->capacity != 0) out->infos->layout = 7;
  return status;
}
static void Change(trine_plugin& t) { t.layout_list = List; }
TRINE_FIXTURE(Change)
