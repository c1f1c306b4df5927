// Offers a layout of the ABI: the order in which the kernels read their weights best.
#include <algorithm>

#include "backends/common/packed_layout.h"
#include "backends/cpu/device.h"

namespace trine::cpu {
namespace {

using cpu_kernels::KernelTable;
using cpu_kernels::PackedShape;
using sdk::KnownDim;

class CpuLayout final : public backends::BackendLayout {
 public:
  explicit CpuLayout(const KernelTable& kernels)
      : BackendLayout("cpu", /*gathers=*/true), kernels_(kernels) {}

 private:
  trine_layout_info Describe(const trine_tensor& t) const override {
    trine_layout_info info{};
    if (kernels_.packing == 0 || !backends::IsDense(t)) return info;
    const PackedShape shape = kernels_.packed_shape(static_cast<quant::Type>(t.dtype), t.dims[0]);
    if (shape.group_rows == 0) return info;
    info.layout = sdk::OwnLayout("cpu", kernels_.packing);
    info.group_rows = static_cast<uint64_t>(shape.group_rows);
    info.group_bytes = static_cast<uint64_t>(shape.group_bytes);
    info.alignment = cpu_kernels::kPackedAlignment;
    const uint64_t groups = (KnownDim(t, 1) + info.group_rows - 1) / info.group_rows;
    // Can't overflow: a graph's sizes are bounded, and a group is hardly larger than its rows.
    info.packed_bytes = groups * KnownDim(t, 2) * KnownDim(t, 3) * info.group_bytes;
    return info;
  }

  bool ConvertRows(const trine_layout_convert_args& args,
                   const trine_layout_info& info) const override {
    if (args.direction != TRINE_LAYOUT_PACK) return false;
    const trine_tensor& t = *args.tensor;
    const auto row_bytes = sdk::ValueBytes(t.dtype, t.dims[0]);
    const uint64_t rows = KnownDim(t, 1), groups = (rows + info.group_rows - 1) / info.group_rows;
    const auto* src = static_cast<const std::byte*>(args.src);
    auto* dst = static_cast<std::byte*>(args.dst);
    for (uint64_t row = args.row_begin; row < args.row_end;) {
      const uint64_t matrix = row / rows, first = row % rows;
      const uint64_t count = std::min({info.group_rows, rows - first, args.row_end - row});
      const uint64_t group = matrix * groups + first / info.group_rows;
      kernels_.pack(
          {static_cast<quant::Type>(t.dtype), t.dims[0],
           src + row * static_cast<uint64_t>(row_bytes), row_bytes, static_cast<int64_t>(count)},
          dst + group * info.group_bytes);
      row += count;
    }
    return true;
  }

  const KernelTable& kernels_;
};

CpuLayout LayoutOf(const trine_device& device) {
  return CpuLayout(*device.backend->choice.level->table);
}

}  // namespace

std::string WhyNotInLayout(const KernelTable& kernels, const sdk::Graph& graph, size_t index) {
  return CpuLayout(kernels).WhyNotIn(graph, index);
}

void SetPacked(const KernelTable& kernels, reference::View* view) {
  const PackedShape shape = kernels.packed_shape(view->type, view->dims[0]);
  if (shape.group_rows == 0) return;  // no op reads it; otherwise the graph would have been refused
  view->packed = true;
  view->strides[1] = shape.group_bytes;
  view->strides[2] = (view->dims[1] + shape.group_rows - 1) / shape.group_rows * shape.group_bytes;
  view->strides[3] = view->strides[2] * view->dims[2];
}

trine_status LayoutCalls::List(trine_device* device, const trine_graph* graph, uint32_t tensor,
                               trine_layout_list* out, trine_error* err) {
  return LayoutOf(*device).List(graph, tensor, out, err);
}

trine_status LayoutCalls::Convert(trine_device* device, const trine_layout_convert_args* args,
                                  trine_error* err) {
  return LayoutOf(*device).Convert(args, err);
}

}  // namespace trine::cpu
