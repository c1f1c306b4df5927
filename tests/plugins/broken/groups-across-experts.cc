// Groups the rows of all experts as if they were one matrix.
#include "tests/plugins/sound_backend.h"

static trine_status List(trine_device* device, const trine_graph* graph, uint32_t tensor,
                         trine_layout_list* out, trine_error* err) {
  const trine_status status = sound::LayoutList(device, graph, tensor, out, err);
  if (status != TRINE_OK || out->count == 0 || out->capacity == 0) return status;
  const trine_tensor t = trine::sdk::At(graph->tensors, graph->tensor_stride, tensor);
  if (t.rank == 3) {
    out->infos->packed_bytes =
        static_cast<uint64_t>(sound::RoomFor(sound::kMirrored, t.dims[1] * t.dims[2])) *
        sound::RowBytes(t);
  }
  return status;
}
static void Change(trine_plugin& t) { t.layout_list = List; }
TRINE_FIXTURE(Change)
