// The order in which the kernels like their weights best, as a layout of the ABI.
#ifndef TRINE_BACKENDS_CPU_LAYOUTS_H_
#define TRINE_BACKENDS_CPU_LAYOUTS_H_

#include <cstdint>
#include <string>

#include "backends/cpu/device.h"
#include "kernels/cpu/kernel_table.h"

namespace trine::cpu {

// "" when the op reads no tensor, or only weights it can read, in the level's own layout.
std::string WhyNotInLayout(const cpu_kernels::KernelTable& kernels, const sdk::Graph& graph,
                           size_t op);

// Makes the view of a packed tensor one that the kernels take for such.
void SetPacked(const cpu_kernels::KernelTable& kernels, reference::View* view);

// Entries of the plugin's table.
trine_status LayoutList(trine_device* device, const trine_graph* graph, uint32_t tensor,
                        trine_layout_list* out, trine_error* err);
trine_status LayoutConvert(trine_device* device, const trine_layout_convert_args* args,
                           trine_error* err);

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_LAYOUTS_H_
