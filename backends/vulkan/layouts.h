// The packed layout of kernels/quant/packed_rows.h as a layout of the ABI.
#ifndef TRINE_BACKENDS_VULKAN_LAYOUTS_H_
#define TRINE_BACKENDS_VULKAN_LAYOUTS_H_

#include <cstdint>
#include <string>

#include "trine/backend_sdk.h"

namespace trine::vulkan {

// Bytes of a row of a tensor in the packed layout. The tensor has one.
uint64_t PackedRowBytesOf(const trine_tensor& t);

// "" when the op reads no tensor, or only weights it can read, in the packed layout.
std::string WhyNotInLayout(const sdk::Graph& graph, size_t op);

// Entries of the plugin's table.
trine_status LayoutList(trine_device* device, const trine_graph* graph, uint32_t tensor,
                        trine_layout_list* out, trine_error* err);
trine_status LayoutConvert(trine_device* device, const trine_layout_convert_args* args,
                           trine_error* err);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_LAYOUTS_H_
