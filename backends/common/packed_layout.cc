#include "backends/common/packed_layout.h"

#include <algorithm>
#include <cstring>

#include "backends/common/op_attributes.h"
#include "kernels/quant/packed_rows.h"

namespace trine::backends {
namespace {

using sdk::Fail;
using sdk::KnownDim;

quant::Type TypeOf(const trine_tensor& t) { return static_cast<quant::Type>(t.dtype); }

// Describes the layout for a tensor. Returns layout 0 if the tensor can't have it.
trine_layout_info DescribeAs(uint64_t id, const trine_tensor& t) {
  trine_layout_info info{};
  uint64_t row_bytes = 0;
  if (!IsDense(t) || !HasPackedLayout(TypeOf(t)) ||
      !PackedRowBytes(TypeOf(t), t.dims[0], &row_bytes)) {
    return info;
  }
  info.layout = id;
  info.group_rows = 1;
  info.group_bytes = row_bytes;
  info.alignment = quant::kPackedAlignment;
  // Can't overflow: a graph's sizes are bounded, and a packed row is hardly larger than a plain
  // one.
  info.packed_bytes = row_bytes * KnownDim(t, 1) * KnownDim(t, 2) * KnownDim(t, 3);
  return info;
}

}  // namespace

uint64_t PackedRowBytesOf(const trine_tensor& t) { return DescribeAs(1, t).group_bytes; }

uint64_t RowBytesOf(const trine_tensor& t, const sdk::Dims& dims) {
  return t.layout == TRINE_LAYOUT_PLAIN ? static_cast<uint64_t>(sdk::ValueBytes(t.dtype, dims[0]))
                                        : PackedRowBytesOf(t);
}

sdk::Dims StridesOf(const trine_tensor& t, const sdk::Dims& dims) {
  sdk::Dims strides = sdk::ResolveStrides(t, dims);
  if (t.layout == TRINE_LAYOUT_PLAIN) return strides;
  strides[1] = static_cast<int64_t>(PackedRowBytesOf(t));
  strides[2] = strides[1] * dims[1];
  strides[3] = strides[2] * dims[2];
  return strides;
}

bool IsDense(const trine_tensor& t) {
  return t.rank >= 2 && t.rank <= TRINE_MAX_RANK && sdk::FindDtype(t.dtype) != nullptr &&
         std::all_of(t.dims, t.dims + t.rank, [](int64_t dim) { return dim > 0; }) &&
         std::all_of(t.strides, t.strides + t.rank, [](int64_t s) { return s == 0; });
}

std::string BackendLayout::WhyNotIn(const sdk::Graph& graph, size_t index) const {
  const sdk::Op& op = graph.ops[index];
  const bool takes = IsProduct(op.kind) || (gathers_ && op.kind == TRINE_OP_GATHER_ROWS);
  for (const auto* list : {&op.in, &op.out}) {
    for (const uint32_t& id : *list) {
      if (id == TRINE_NONE || graph.tensors[id].layout == TRINE_LAYOUT_PLAIN) continue;
      const trine_tensor& t = graph.tensors[id];
      const trine_layout_info info = Describe(t);
      if (info.layout != t.layout || info.layout == 0) {
        return std::string("the ") + backend_ + " backend has no such layout for the tensor";
      }
      if (&id != op.in.data() || !takes) {
        return gathers_ ? "only weights of products and tables are read in a packed layout"
                        : "only weights of products are read in a packed layout";
      }
      const trine_slot& slot = graph.slots[t.slot];
      if (slot.role != TRINE_ROLE_CONSTANT || t.offset > slot.bytes ||
          slot.bytes - t.offset < info.packed_bytes) {
        return "a packed tensor does not fit its slot";
      }
      if (t.offset % info.alignment != 0) return "a packed tensor is not aligned";
    }
  }
  return "";
}

trine_status BackendLayout::List(const trine_graph* given, uint32_t tensor, trine_layout_list* out,
                                 trine_error* err) const {
  return sdk::Guard(err, [&]() -> trine_status {
    sdk::Graph graph;
    const trine_status status = sdk::CopyGraph(given, &graph, err);
    if (status != TRINE_OK) return status;
    if (tensor >= graph.tensors.size()) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the graph has no such tensor");
    }
    const trine_tensor& t = graph.tensors[tensor];
    trine_layout_info info{};
    if (graph.slots[t.slot].role == TRINE_ROLE_CONSTANT) info = Describe(t);
    out->count = info.layout == 0 ? 0 : 1;
    if (out->count == 1 && out->capacity > 0) {
      std::memcpy(out->infos, &info, std::min<size_t>(out->stride, sizeof(info)));
    }
    return TRINE_OK;
  });
}

trine_status BackendLayout::Convert(const trine_layout_convert_args* given,
                                    trine_error* err) const {
  const trine_layout_convert_args args = sdk::ReadIn(given);
  return sdk::Guard(err, [&]() -> trine_status {
    if (args.tensor == nullptr || args.src == nullptr || args.dst == nullptr) {
      return Fail(err, TRINE_INVALID_ARGUMENT,
                  "a tensor, its source and where to put it are needed");
    }
    const trine_tensor& t = *args.tensor;
    const trine_layout_info info = Describe(t);
    if (info.layout == 0 || info.layout != args.layout) {
      return Fail(err, TRINE_INVALID_ARGUMENT,
                  std::string("the ") + backend_ + " backend has no such layout for the tensor");
    }
    if (args.direction != TRINE_LAYOUT_PACK && args.direction != TRINE_LAYOUT_UNPACK) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "layouts are packed or unpacked");
    }
    if (args.row_begin > args.row_end ||
        args.row_end > KnownDim(t, 1) * KnownDim(t, 2) * KnownDim(t, 3)) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the tensor has no such rows");
    }
    const auto cuts_a_group = [&](uint64_t row) {
      return row % KnownDim(t, 1) % info.group_rows != 0;
    };
    if (cuts_a_group(args.row_begin) || cuts_a_group(args.row_end)) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the rows are no whole groups");
    }
    if (ConvertRows(args, info)) return TRINE_OK;
    return Fail(err, TRINE_UNIMPLEMENTED,
                std::string("the ") + backend_ + " backend packs weights one way only");
  });
}

trine_layout_info PackedLayout::Describe(const trine_tensor& t) const { return DescribeAs(id_, t); }

bool PackedLayout::ConvertRows(const trine_layout_convert_args& args,
                               const trine_layout_info& info) const {
  const trine_tensor& t = *args.tensor;
  const auto plain_bytes = static_cast<uint64_t>(sdk::ValueBytes(t.dtype, t.dims[0]));
  const auto* src = static_cast<const std::byte*>(args.src);
  auto* dst = static_cast<std::byte*>(args.dst);
  for (uint64_t row = args.row_begin; row < args.row_end; ++row) {
    if (args.direction == TRINE_LAYOUT_PACK) {
      PackRow(TypeOf(t), t.dims[0], src + row * plain_bytes, dst + row * info.group_bytes);
    } else {
      UnpackRow(TypeOf(t), t.dims[0], src + row * info.group_bytes, dst + row * plain_bytes);
    }
  }
  return true;
}

}  // namespace trine::backends
