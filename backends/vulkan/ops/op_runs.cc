#include "backends/vulkan/ops/op_runs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/common/op_attributes.h"
#include "backends/vulkan/ops/single_runs.h"
#include "kernels/vulkan/runs/attention.h"
#include "kernels/vulkan/runs/simple.h"

namespace trine::vulkan {
namespace {

using backends::IsProduct;

// The most tokens of a run whose attention may be split. The scratch has room for this many.
constexpr int64_t kCutRows = 8;

Product ProductOf(const Operands& o) {
  const bool moe = o.op().kind == TRINE_OP_MOE_MATMUL;
  Product product;
  product.w = o.In(0);
  product.packed = o.IsPacked(0);
  product.x = o.In(1);
  const size_t bias = moe ? 3 : 2;
  if (o.Has(bias)) product.bias = o.In(bias);
  product.y = o.Out(0);
  if (moe) {
    product.ids = o.In(2);
    product.experts = product.w.dims[2];
  }
  return product;
}

// A part of a tensor that has its own binding: some rows of weights, or some matrices.
struct WeightWindow {
  int64_t first, count;
  uint64_t offset, bytes;  // range of the binding
  uint64_t skip;           // from the binding's start to the first item
};

// Divides `count` items of `stride` bytes, the last of `last_bytes`, into windows that the device
// can bind. The items begin `begin` bytes after a possible start of a binding. Returns "", or why
// not.
std::string CutWindows(const DeviceCaps& caps, uint64_t begin, int64_t count, uint64_t stride,
                       uint64_t last_bytes, std::vector<WeightWindow>* windows) {
  // There would be no window, and so no run to write the results.
  if (count == 0) return "the table, or the list of experts, is empty";
  const uint64_t alignment = BindingAlignment(caps);
  const uint64_t room = std::min<uint64_t>(caps.max_storage_range, UINT32_MAX) - alignment - 4;
  if (last_bytes > room) return "a row, or an expert, is larger than the device can bind";
  const int64_t most =
      1 + static_cast<int64_t>((room - last_bytes) / std::max<uint64_t>(stride, 1));
  for (int64_t first = 0; first < count; first += most) {
    const int64_t n = std::min(most, count - first);
    const uint64_t at = begin + static_cast<uint64_t>(first) * stride;
    const uint64_t offset = at / alignment * alignment;
    const uint64_t end = at + static_cast<uint64_t>(n - 1) * stride + last_bytes;
    windows->push_back({first, n, offset, RoundUp(end - offset, 4), at - offset});
  }
  return "";
}

int64_t PositionsOf(const sdk::Graph& graph, const AttentionViews& views, const int64_t* params) {
  return backends::PositionsSeen(graph, views.block_table.dims[0] * views.k.dims[1], params);
}

AttentionDevice AttentionDeviceOf(const DeviceCaps& caps) {
  AttentionDevice device;
  device.max_workgroup = std::min(device.max_workgroup, caps.max_workgroup_invocations);
  device.shared_bytes = caps.max_shared_bytes;
  return device;
}

AttentionViews AttentionViewsOf(const Operands& o) {
  AttentionViews views;
  views.q = o.In(0);
  views.k = o.In(1);
  views.v = o.In(2);
  views.block_table = o.In(3);
  views.q_offsets = o.In(4);
  views.kv_lengths = o.In(5);
  views.y = o.Out(0);
  return views;
}

// Returns the product with which QuantizeRun quantises the rows of all heads together: one column
// for each token. Fusion asks for this only if a token's rows have no gaps between them.
Product ProductOfRows(const TensorView& y) {
  Product product;
  product.w.dims[0] = y.dims[0] * y.dims[1];
  product.x.dims = {product.w.dims[0], y.dims[2], 1, 1};
  product.x.strides[1] = y.strides[2];
  product.x.offset = y.offset;
  return product;
}

std::string WhyNotNorm(const DeviceCaps& caps, const sdk::Graph& graph, size_t index) {
  const sdk::Op& op = graph.ops[index];
  if (op.kind != TRINE_OP_RMS_NORM && op.kind != TRINE_OP_LAYER_NORM) return "";
  const int64_t most = MostNormValues(caps.max_workgroup_invocations);
  if (graph.tensors[op.in[0]].dims[0] <= most) return "";
  return absl::StrCat("the device has norms of at most ", most, " values");
}

// Makes the scratch large enough for an op.
void Grow(const RunChoices& choices, const sdk::Graph& graph, const Misalignment& aligned,
          size_t index, const int64_t* max, RunScratch* scratch) {
  const uint64_t alignment = BindingAlignment(*choices.caps);
  const auto grow = [&](uint64_t bytes, uint64_t* most) {
    *most = std::max(*most, RoundUp(bytes, alignment));
  };
  const Operands o(choices, graph, aligned, index, max);
  if (IsProduct(o.op().kind)) {
    grow(ScratchBytes(ProductOf(o), choices.products), &scratch->product_bytes);
  } else if (o.op().kind == TRINE_OP_ATTENTION) {
    AttentionViews views = AttentionViewsOf(o);
    views.q.dims[2] = views.y.dims[2] = std::min(views.q.dims[2], kCutRows);
    const int64_t positions = PositionsOf(graph, views, max);
    const AttentionCut cut = ChooseAttentionCut(views, positions, AttentionDeviceOf(*choices.caps));
    // Attention whose scratch does not fit in a binding is not split.
    const uint64_t bytes = AttentionScratchBytes(views, positions, cut);
    if (bytes <= choices.caps->max_storage_range) grow(bytes, &scratch->attention_bytes);
  }
}

}  // namespace

std::string OpRuns::AddProduct(const OpGroup& group, const int64_t* params,
                               std::vector<OpRun>* runs) const {
  const Operands o(choices_, graph_, misaligned_, group.first, params);
  const Product whole = ProductOf(o);
  const bool moe = whole.ids.has_value();
  const uint32_t w = o.op().in[0];
  const OpRun::Operand scratch{kScratchOperand, 0, scratch_.product_bytes};
  if (ScratchBytes(whole, choices_.products) > scratch_.product_bytes) {
    return "the plan's scratch is too small";
  }
  const uint64_t row_bytes = o.RowBytes(w);
  const int64_t rows = whole.w.dims[1];
  const auto matrix_stride = static_cast<uint64_t>(whole.w.strides[2]);
  const auto row_stride = static_cast<uint64_t>(whole.w.strides[1]);
  std::vector<WeightWindow> windows;
  std::string why =
      moe ? CutWindows(
                *choices_.caps, whole.w.offset, whole.w.dims[2], matrix_stride,
                static_cast<uint64_t>(std::max<int64_t>(rows, 1) - 1) * row_stride + row_bytes,
                &windows)
          : CutWindows(*choices_.caps, whole.w.offset, rows, row_stride, row_bytes, &windows);
  if (!why.empty()) return why;
  if (group.quantizes) {
    why = o.Bind(QuantizeRun(whole), scratch, 4 * o.Elements(whole.x), runs);
    if (!why.empty()) return why;
    runs->back().label = sdk::kQuantizeName;
  }
  if (NeedsLists(whole, choices_.products)) {
    why = o.Bind(ListColumnsRun(whole, choices_.products), scratch, o.Elements(*whole.ids), runs);
    if (!why.empty()) return why;
    runs->back().label = "moe_matmul lists";
  }
  for (const WeightWindow& window : windows) {
    Product held = whole;
    if (moe) {
      held.w.dims[2] = window.count;
      held.first_expert = window.first;
    } else {
      held = RowsOf(whole, window.first, window.count);
    }
    held.w.offset = window.skip;
    why = WhyNotProduct(held);
    if (!why.empty()) return why;
    for (const Product& part : CutProduct(held, choices_.tuning.submit_operations)) {
      why = o.Bind(ProductRun(part, choices_.products), scratch, OperationsOf(part), runs);
      OpRun& run = runs->back();
      for (size_t b = 0; b < run.operands.size(); ++b) {
        if (run.run.operands[b] == 0) run.operands[b] = {w, window.offset, window.bytes};
      }
      why = o.WhyNotBound(run);
      if (!why.empty()) return why;
    }
  }
  return "";
}

std::string OpRuns::AddGather(size_t index, const int64_t* params, std::vector<OpRun>* runs) const {
  const Operands o(choices_, graph_, misaligned_, index, params);
  const TensorView table = o.In(0);
  std::vector<WeightWindow> windows;
  std::string why =
      CutWindows(*choices_.caps, table.offset, table.dims[1],
                 static_cast<uint64_t>(table.strides[1]), o.RowBytes(o.op().in[0]), &windows);
  if (!why.empty()) return why;
  for (const WeightWindow& window : windows) {
    TensorView part = table;
    part.offset = window.skip;
    why = o.Bind(GatherRowsRun(part, {window.first, window.count}, o.In(1), o.Out(0),
                               choices_.tuning.elementwise_workgroup),
                 {}, o.Elements(o.Out(0)), runs);
    runs->back().operands[0].offset = window.offset;
    runs->back().operands[0].bytes = window.bytes;
    why = o.WhyNotBound(runs->back());
    if (!why.empty()) return why;
  }
  return "";
}

std::string OpRuns::AddAttention(const OpGroup& group, const int64_t* params,
                                 std::vector<OpRun>* runs) const {
  const Operands o(choices_, graph_, misaligned_, group.first, params);
  AttentionViews views = AttentionViewsOf(o);
  TensorView sinks;
  if (o.Has(6)) {
    sinks = o.In(6);
    views.sinks = &sinks;
  }
  const reference::AttentionParams attention = backends::AttentionParamsOf(o.op());
  const int64_t positions = PositionsOf(graph_, views, params);
  AttentionCut cut = ChooseAttentionCut(views, positions, AttentionDeviceOf(*choices_.caps));
  if (AttentionScratchBytes(views, positions, cut) > scratch_.attention_bytes) cut.split = false;
  if (AttentionSharedBytes(views, cut) > choices_.caps->max_shared_bytes) {
    return "the heads are too wide for the device's shared memory";
  }
  const OpRun::Operand scratch{kScratchOperand, scratch_.product_bytes, scratch_.attention_bytes};
  // With causal attention and a window, a token sees at most its window, in whole chunks.
  const bool windowed = attention.causal && attention.window > 0;
  const int64_t seen =
      windowed ? std::min(positions, attention.window + 2 * TRINE_KV_CHUNK) : positions;
  // A part of divided attention can't quantise: it does not know its place among all heads.
  const uint64_t most = choices_.tuning.submit_operations;
  const bool quantizes = group.quantizes && OperationsOf(views, seen) <= most;
  const OpRun::Operand quantized{kScratchOperand, 0, scratch_.product_bytes};
  const auto add = [&](const AttentionViews& part) -> std::string {
    for (KernelRun& run : AttentionRuns(part, attention, positions, cut, quantizes)) {
      // Quantised activations have their own part of the scratch.
      std::vector<size_t> apart;
      for (size_t b = 0; b < run.operands.size(); ++b) {
        if (run.operands[b] != kAttentionQuantized) continue;
        run.operands[b] = kScratchOperand;
        apart.push_back(b);
      }
      std::string why = o.Bind(std::move(run), scratch, OperationsOf(part, seen), runs);
      for (const size_t b : apart) runs->back().operands[b] = quantized;
      if (!why.empty()) return why;
    }
    return "";
  };
  std::string why = CutAttention(views, seen, most, add);
  if (!why.empty() || quantizes == group.quantizes) return why;
  KernelRun quantize = QuantizeRun(ProductOfRows(views.y));
  quantize.operands[0] = kAttentionY;
  why = o.Bind(std::move(quantize), quantized, 4 * o.Elements(views.y), runs);
  runs->back().label = sdk::kQuantizeName;
  return why;
}

std::string OpRuns::AddUnnamed(const OpGroup& group, const int64_t* params,
                               std::vector<OpRun>* runs) const {
  const sdk::Op& op = graph_.ops[group.first];
  if (op.kind == TRINE_OP_ATTENTION) return AddAttention(group, params, runs);
  if (group.kind != OpGroup::Kind::kAlone) {
    return AddFusedRun(choices_, graph_, misaligned_, group, params,
                       {kScratchOperand, 0, scratch_.product_bytes}, runs);
  }
  if (IsProduct(op.kind)) return AddProduct(group, params, runs);
  if (op.kind == TRINE_OP_GATHER_ROWS) return AddGather(group.first, params, runs);
  const Operands o(choices_, graph_, misaligned_, group.first, params);
  return o.Bind(SimpleRun(choices_, o), {}, o.Elements(o.Out(0)), runs);
}

std::string OpRuns::Add(const OpGroup& group, const int64_t* params,
                        std::vector<OpRun>* runs) const {
  const size_t before = runs->size();
  std::string why = AddUnnamed(group, params, runs);
  for (size_t i = before; i < runs->size(); ++i) {
    if ((*runs)[i].label == nullptr) (*runs)[i].label = backends::GroupName(graph_, group);
  }
  return why;
}

RunScratch ScratchOf(const RunChoices& choices, const sdk::Graph& graph) {
  RunScratch scratch;
  const std::vector<int64_t> max = graph.MaxParams();
  const Misalignment aligned(graph.tensors.size(), 0);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    Grow(choices, graph, aligned, i, max.data(), &scratch);
  }
  return scratch;
}

std::string WhyNotOp(const RunChoices& choices, const sdk::Graph& graph, size_t index) {
  std::string why = backends::WhyNotAttributes(graph.ops[index]);
  if (why.empty()) why = WhyNotNorm(*choices.caps, graph, index);
  if (why.empty()) why = kPackedLayout.WhyNotIn(graph, index);
  if (!why.empty()) return why;
  const auto alignment = static_cast<uint32_t>(BindingAlignment(*choices.caps));
  Misalignment misaligned;
  for (const trine_tensor& t : graph.tensors) {
    misaligned.push_back(static_cast<uint32_t>(t.offset % alignment));
  }
  const std::vector<int64_t> max = graph.MaxParams();
  std::vector<int64_t> min;
  for (const trine_param& p : graph.params) min.push_back(p.min);
  RunScratch scratch;
  Grow(choices, graph, misaligned, index, max.data(), &scratch);
  for (const std::vector<int64_t>& params : {max, min}) {
    std::vector<OpRun> runs;
    const OpRuns maker(choices, graph, scratch, misaligned);
    why = maker.Add(backends::AloneAt(graph, static_cast<uint32_t>(index)), params.data(), &runs);
    if (!why.empty()) return why;
  }
  return "";
}

}  // namespace trine::vulkan
