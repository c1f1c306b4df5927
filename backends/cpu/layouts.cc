// Offers a layout of the ABI: the order in which the kernels read their weights best.
#include <algorithm>

#include "backends/common/packed_layout.h"
#include "backends/cpu/device.h"

namespace trine::cpu {
namespace {

using cpu_kernels::KernelTable;
using cpu_kernels::PackedShape;
using sdk::Fail;
using sdk::KnownDim;

uint64_t LayoutOf(const KernelTable& kernels) { return sdk::OwnLayout("cpu", kernels.packing); }

// Describes the layout for a tensor. Returns layout 0 if the tensor can't have it.
trine_layout_info Describe(const KernelTable& kernels, const trine_tensor& t) {
  trine_layout_info info{};
  if (kernels.packing == 0 || !backends::IsDense(t)) return info;
  const PackedShape shape = kernels.packed_shape(static_cast<quant::Type>(t.dtype), t.dims[0]);
  if (shape.group_rows == 0) return info;
  info.layout = LayoutOf(kernels);
  info.group_rows = static_cast<uint64_t>(shape.group_rows);
  info.group_bytes = static_cast<uint64_t>(shape.group_bytes);
  info.alignment = cpu_kernels::kPackedAlignment;
  const uint64_t groups = (KnownDim(t, 1) + info.group_rows - 1) / info.group_rows;
  // Can't overflow: a graph's sizes are bounded, and a group is hardly larger than its rows.
  info.packed_bytes = groups * KnownDim(t, 2) * KnownDim(t, 3) * info.group_bytes;
  return info;
}

bool TakesPackedWeights(uint32_t kind) {
  return kind == TRINE_OP_MATMUL || kind == TRINE_OP_MOE_MATMUL || kind == TRINE_OP_GATHER_ROWS;
}

void PackRows(const KernelTable& kernels, const trine_layout_convert_args& args,
              const trine_layout_info& info) {
  const trine_tensor& t = *args.tensor;
  const auto row_bytes = sdk::ValueBytes(t.dtype, t.dims[0]);
  const uint64_t rows = KnownDim(t, 1), groups = (rows + info.group_rows - 1) / info.group_rows;
  const auto* src = static_cast<const std::byte*>(args.src);
  auto* dst = static_cast<std::byte*>(args.dst);
  for (uint64_t row = args.row_begin; row < args.row_end;) {
    const uint64_t matrix = row / rows, first = row % rows;
    const uint64_t count = std::min({info.group_rows, rows - first, args.row_end - row});
    const uint64_t group = matrix * groups + first / info.group_rows;
    kernels.pack(
        {static_cast<quant::Type>(t.dtype), t.dims[0], src + row * static_cast<uint64_t>(row_bytes),
         row_bytes, static_cast<int64_t>(count)},
        dst + group * info.group_bytes);
    row += count;
  }
}

// Returns whether `row` lies inside a group. Ranges of rows must begin and end between groups.
bool CutsAGroup(const trine_tensor& t, const trine_layout_info& info, uint64_t row) {
  return row % KnownDim(t, 1) % info.group_rows != 0;
}

}  // namespace

std::string WhyNotInLayout(const KernelTable& kernels, const sdk::Graph& graph, size_t index) {
  return backends::WhyNotPacked(
      graph, index, "cpu", [&](const trine_tensor& t) { return Describe(kernels, t); },
      TakesPackedWeights(graph.ops[index].kind),
      "only weights of products and gathers are read in a packed layout");
}

void SetPacked(const KernelTable& kernels, reference::View* view) {
  const PackedShape shape = kernels.packed_shape(view->type, view->dims[0]);
  if (shape.group_rows == 0) return;  // no op reads it; otherwise the graph would have been refused
  view->packed = true;
  view->strides[1] = shape.group_bytes;
  view->strides[2] = (view->dims[1] + shape.group_rows - 1) / shape.group_rows * shape.group_bytes;
  view->strides[3] = view->strides[2] * view->dims[2];
}

trine_status LayoutList(trine_device* device, const trine_graph* given, uint32_t tensor,
                        trine_layout_list* out, trine_error* err) {
  const KernelTable& kernels = *device->backend->choice.level->table;
  return backends::ListLayout(
      given, tensor, [&](const trine_tensor& t) { return Describe(kernels, t); }, out, err);
}

trine_status LayoutConvert(trine_device* device, const trine_layout_convert_args* given,
                           trine_error* err) {
  const trine_layout_convert_args args = sdk::ReadIn(given);
  const KernelTable& kernels = *device->backend->choice.level->table;
  return sdk::Guard(err, [&]() -> trine_status {
    if (args.tensor == nullptr || args.src == nullptr || args.dst == nullptr) {
      return Fail(err, TRINE_INVALID_ARGUMENT,
                  "a tensor, its source and where to put it are needed");
    }
    const trine_layout_info info = Describe(kernels, *args.tensor);
    if (info.layout == 0 || info.layout != args.layout) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the cpu backend has no such layout for the tensor");
    }
    if (args.direction != TRINE_LAYOUT_PACK) {
      return Fail(err, TRINE_UNIMPLEMENTED, "the cpu backend packs weights one way only");
    }
    const trine_tensor& t = *args.tensor;
    const uint64_t rows = KnownDim(t, 1) * KnownDim(t, 2) * KnownDim(t, 3);
    if (args.row_begin > args.row_end || args.row_end > rows ||
        CutsAGroup(t, info, args.row_begin) || CutsAGroup(t, info, args.row_end)) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the rows are no whole groups");
    }
    PackRows(kernels, args, info);
    return TRINE_OK;
  });
}

}  // namespace trine::cpu
