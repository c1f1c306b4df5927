// The layout that packed weights have on this backend's devices.
#ifndef TRINE_BACKENDS_HIP_LAYOUTS_H_
#define TRINE_BACKENDS_HIP_LAYOUTS_H_

#include "backends/common/packed_layout.h"
#include "backends/hip/arch.h"

namespace trine::hip {

// The low half of its id is the version of packed_rows.h.
inline constexpr backends::PackedLayout kPackedLayout(kPluginName, sdk::OwnLayout(kPluginName, 1),
                                                      /*gathers=*/true);

// Entries of the plugin's table.
inline trine_status LayoutList(trine_device*, const trine_graph* graph, uint32_t tensor,
                               trine_layout_list* out, trine_error* err) {
  return kPackedLayout.List(graph, tensor, out, err);
}
inline trine_status LayoutConvert(trine_device*, const trine_layout_convert_args* args,
                                  trine_error* err) {
  return kPackedLayout.Convert(args, err);
}

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_LAYOUTS_H_
