#include "backends/vulkan/op_runs.h"

#include <algorithm>
#include <utility>

#include "backends/vulkan/layouts.h"
#include "kernels/vulkan/attention.h"
#include "kernels/vulkan/data_movement.h"
#include "kernels/vulkan/elementwise.h"
#include "kernels/vulkan/norm.h"
#include "kernels/vulkan/selection.h"

namespace trine::vulkan {
namespace {

// Rows of a run whose attention may be cut that way; scratch is kept for as many.
constexpr int64_t kCutRows = 8;

uint64_t RoundUp(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

// Inputs of an op, absent optional ones included: outputs are counted from there.
uint32_t InputsOf(uint32_t kind) {
  switch (kind) {
    case TRINE_OP_ATTENTION:
      return 7;
    case TRINE_OP_MOE_MATMUL:
      return 4;
    case TRINE_OP_LAYER_NORM:
    case TRINE_OP_MATMUL:
      return 3;
    case TRINE_OP_COPY:
    case TRINE_OP_ACTIVATION:
    case TRINE_OP_SCALE:
    case TRINE_OP_SOFTCAP:
    case TRINE_OP_TOP_K:
      return 1;
    default:
      return 2;
  }
}

// An op's tensors at some parameters, as shaders see them.
class Operands {
 public:
  Operands(const RunChoices& choices, const sdk::Graph& graph, const Misalignment& misaligned,
           size_t index, const int64_t* params)
      : choices_(choices),
        graph_(graph),
        op_(graph.ops[index]),
        misaligned_(misaligned),
        params_(params) {}

  const sdk::Op& op() const { return op_; }
  bool Has(size_t i) const { return op_.HasInput(i); }

  TensorView In(size_t i) const { return ViewOf(op_.in[i]); }
  TensorView Out(size_t i) const { return ViewOf(op_.out[i]); }
  bool IsPacked(size_t i) const { return graph_.tensors[op_.in[i]].layout != TRINE_LAYOUT_PLAIN; }

  uint32_t TensorAt(uint32_t operand) const {
    const uint32_t inputs = InputsOf(op_.kind);
    return operand < inputs ? op_.in[operand] : op_.out[operand - inputs];
  }

  // All of a tensor, from where its binding begins.
  uint64_t BytesOf(uint32_t tensor) const {
    const TensorView view = ViewOf(tensor);
    uint64_t end = view.offset + RowBytes(tensor);
    for (int i = 1; i < 4; ++i) {
      if (view.dims[i] == 0) return view.offset;
      end += static_cast<uint64_t>(view.dims[i] - 1) * static_cast<uint64_t>(view.strides[i]);
    }
    return RoundUp(end, 4);
  }

  uint64_t RowBytes(uint32_t tensor) const {
    const trine_tensor& t = graph_.tensors[tensor];
    if (t.layout != TRINE_LAYOUT_PLAIN) return PackedRowBytesOf(t);
    return static_cast<uint64_t>(sdk::ValueBytes(t.dtype, sdk::ResolveDims(t, params_)[0]));
  }

  // `run` with whole tensors for its operands, and `scratch` for the one that is none. "" or why a
  // tensor can't be bound.
  std::string Bind(KernelRun run, OpRun::Operand scratch, uint64_t operations,
                   std::vector<OpRun>* runs) const {
    OpRun bound;
    for (const uint32_t operand : run.operands) {
      if (operand == kScratchOperand) {
        bound.operands.push_back(scratch);
      } else {
        const uint32_t tensor = TensorAt(operand);
        bound.operands.push_back({tensor, 0, BytesOf(tensor)});
      }
    }
    bound.run = std::move(run);
    bound.operations = operations;
    runs->push_back(std::move(bound));
    return WhyNotBound(runs->back());
  }

  std::string WhyNotBound(const OpRun& run) const {
    for (const OpRun::Operand& operand : run.operands) {
      if (operand.bytes > choices_.caps->max_storage_range) {
        return "a tensor is larger than the device can bind";
      }
    }
    const DeviceCaps& caps = *choices_.caps;
    if (run.run.constants[0] > caps.max_workgroup_invocations) {
      return "the device's workgroups are too small for a shader";
    }
    for (size_t i = 0; i < run.run.groups.size(); ++i) {
      if (run.run.groups[i] > caps.max_workgroups[i])
        return "more workgroups than the device takes";
    }
    return MissingForShader(caps, *run.run.shader);
  }

  uint64_t Elements(const TensorView& view) const {
    return static_cast<uint64_t>(view.dims[0] * Rows(view));
  }

 private:
  TensorView ViewOf(uint32_t tensor) const {
    const trine_tensor& t = graph_.tensors[tensor];
    TensorView view;
    view.type = static_cast<quant::Type>(t.dtype);
    view.dims = sdk::ResolveDims(t, params_);
    view.strides = sdk::ResolveStrides(t, view.dims);
    if (t.layout != TRINE_LAYOUT_PLAIN) {
      view.strides[1] = static_cast<int64_t>(PackedRowBytesOf(t));
      view.strides[2] = view.strides[1] * view.dims[1];
      view.strides[3] = view.strides[2] * view.dims[2];
    }
    view.offset = misaligned_[tensor];
    return view;
  }

  const RunChoices& choices_;
  const sdk::Graph& graph_;
  const sdk::Op& op_;
  const Misalignment& misaligned_;
  const int64_t* params_;
};

// Of the ops that are one run over whole tensors.
class SimpleRun {
 public:
  SimpleRun(const RunChoices& choices, const Operands& operands)
      : caps_(*choices.caps), tuning_(choices.tuning), o_(operands) {}

  KernelRun Make() const {
    switch (o_.op().kind) {
      case TRINE_OP_COPY:
        return CopyRun(o_.In(0), o_.Out(0), tuning_.elementwise_workgroup);
      case TRINE_OP_RMS_NORM:
        return RmsNormRun(o_.In(0), Optional(1), o_.op().Attr<trine_norm_attr>().eps, o_.Out(0),
                          Workgroup());
      case TRINE_OP_LAYER_NORM:
        return LayerNormRun(o_.In(0), Optional(1), Optional(2), o_.op().Attr<trine_norm_attr>().eps,
                            o_.Out(0), Workgroup());
      case TRINE_OP_ROPE: {
        const bool halves = o_.op().Attr<trine_rope_attr>().mode == TRINE_ROPE_HALVES;
        return RopeRun(o_.In(0), o_.In(1),
                       halves ? reference::RopeMode::kHalves : reference::RopeMode::kInterleaved,
                       o_.Out(0), tuning_.elementwise_workgroup);
      }
      case TRINE_OP_KV_STORE:
        return KvStoreRun(o_.In(0), o_.In(1), o_.Out(0), Workgroup());
      case TRINE_OP_GLU:
        return GluRun(o_.In(0), o_.In(1), GluParams(), o_.Out(0), tuning_.elementwise_workgroup);
      case TRINE_OP_ACTIVATION:
        return ActivationRun(o_.In(0), Activation(), o_.Out(0), tuning_.elementwise_workgroup);
      case TRINE_OP_ADD:
        return AddRun(o_.In(0), o_.In(1), o_.Out(0), tuning_.elementwise_workgroup);
      case TRINE_OP_MUL:
        return MulRun(o_.In(0), o_.In(1), o_.Out(0), tuning_.elementwise_workgroup);
      case TRINE_OP_SCALE:
        return ScaleRun(o_.In(0), o_.op().Attr<trine_scale_attr>().scale, o_.Out(0),
                        tuning_.elementwise_workgroup);
      case TRINE_OP_SOFTCAP:
        return SoftcapRun(o_.In(0), o_.op().Attr<trine_scale_attr>().scale, o_.Out(0),
                          tuning_.elementwise_workgroup);
      case TRINE_OP_MOE_ROUTE:
        return MoeRouteRun(o_.In(0), Optional(1), RouteParams(), o_.Out(0), o_.Out(1), Workgroup());
      case TRINE_OP_MOE_COMBINE:
        return MoeCombineRun(o_.In(0), o_.In(1), o_.Out(0), Workgroup());
      default:
        return TopKRun(o_.In(0), o_.Out(0), o_.Out(1), Workgroup());
    }
  }

 private:
  // A power of two that every device has.
  uint32_t Workgroup() const { return caps_.max_workgroup_invocations >= 256 ? 256 : 128; }

  const TensorView* Optional(size_t i) const {
    if (!o_.Has(i)) return nullptr;
    views_[i] = o_.In(i);
    return &views_[i];
  }

  reference::GluParams GluParams() const {
    const auto attr = o_.op().Attr<trine_glu_attr>();
    reference::GluParams params;
    params.kind = attr.activation == TRINE_ACT_SILU   ? reference::GluKind::kSilu
                  : attr.activation == TRINE_ACT_GELU ? reference::GluKind::kGelu
                                                      : reference::GluKind::kClampedSwiglu;
    params.alpha = attr.alpha;
    params.limit = attr.limit;
    return params;
  }

  reference::ActivationKind Activation() const {
    switch (o_.op().Attr<trine_activation_attr>().activation) {
      case TRINE_ACT_SILU:
        return reference::ActivationKind::kSilu;
      case TRINE_ACT_GELU:
        return reference::ActivationKind::kGelu;
      case TRINE_ACT_RELU:
        return reference::ActivationKind::kRelu;
      default:
        return reference::ActivationKind::kTanh;
    }
  }

  reference::MoeRouteParams RouteParams() const {
    const auto attr = o_.op().Attr<trine_moe_route_attr>();
    reference::MoeRouteParams params;
    params.scoring = attr.scoring == TRINE_MOE_SOFTMAX   ? reference::MoeScoring::kSoftmax
                     : attr.scoring == TRINE_MOE_SIGMOID ? reference::MoeScoring::kSigmoid
                                                         : reference::MoeScoring::kSelectedSoftmax;
    params.normalize = (attr.flags & TRINE_MOE_NORMALIZE) != 0;
    params.scale = attr.scale;
    return params;
  }

  const DeviceCaps& caps_;
  const Tuning& tuning_;
  const Operands& o_;
  mutable std::array<TensorView, 3> views_;
};

// Attributes that only a newer host knows.
std::string WhyNotAttributes(const sdk::Op& op) {
  const auto between = [](uint32_t value, uint32_t first, uint32_t last) {
    return value >= first && value <= last;
  };
  switch (op.kind) {
    case TRINE_OP_ROPE:
      return between(op.Attr<trine_rope_attr>().mode, TRINE_ROPE_INTERLEAVED, TRINE_ROPE_HALVES)
                 ? ""
                 : "unknown rope mode";
    case TRINE_OP_GLU: {
      const uint32_t kind = op.Attr<trine_glu_attr>().activation;
      return kind == TRINE_ACT_SILU || kind == TRINE_ACT_GELU || kind == TRINE_ACT_SWIGLU_CLAMPED
                 ? ""
                 : "unknown activation of a glu";
    }
    case TRINE_OP_ACTIVATION:
      return between(op.Attr<trine_activation_attr>().activation, TRINE_ACT_SILU, TRINE_ACT_TANH)
                 ? ""
                 : "unknown activation";
    case TRINE_OP_MOE_ROUTE: {
      const auto attr = op.Attr<trine_moe_route_attr>();
      if (!between(attr.scoring, TRINE_MOE_SOFTMAX, TRINE_MOE_SOFTMAX_SELECTED)) {
        return "unknown scoring of experts";
      }
      return (attr.flags & ~uint32_t{TRINE_MOE_NORMALIZE}) == 0 ? "" : "unknown flags of a route";
    }
    case TRINE_OP_ATTENTION:
      return (op.Attr<trine_attention_attr>().flags & ~uint32_t{TRINE_ATTENTION_CAUSAL}) == 0
                 ? ""
                 : "unknown flags of attention";
    default:
      return "";
  }
}

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

// A part of a tensor that is bound by itself: some rows, or matrices, of weights.
struct WeightWindow {
  int64_t first, count;
  uint64_t offset, bytes;  // of the binding
  uint64_t skip;           // from there to the first
};

// `count` items of `stride` bytes, the last of `last_bytes`, that begin `begin` bytes behind a
// place where a binding can be.
std::string CutWindows(const DeviceCaps& caps, uint64_t begin, int64_t count, uint64_t stride,
                       uint64_t last_bytes, std::vector<WeightWindow>* windows) {
  // Results that only a window would have set would stay as they were.
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
  int64_t positions = views.block_table.dims[0] * views.k.dims[1];
  for (size_t i = 0; i < graph.params.size(); ++i) {
    if (graph.params[i].kind == TRINE_PARAM_KV_POSITIONS) {
      positions = std::min(positions, params[i]);
    }
  }
  return (positions + TRINE_KV_CHUNK - 1) / TRINE_KV_CHUNK * TRINE_KV_CHUNK;
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

bool IsProduct(uint32_t kind) { return kind == TRINE_OP_MATMUL || kind == TRINE_OP_MOE_MATMUL; }

}  // namespace

uint64_t BindingAlignment(const DeviceCaps& caps) {
  return std::max<uint64_t>(caps.storage_alignment, 16);
}

uint64_t BufferAlignment(const DeviceCaps& caps) {
  return std::max<uint64_t>(BindingAlignment(caps), sdk::kScratchAlignment);
}

std::string OpRuns::AddProduct(size_t index, const int64_t* params, std::vector<OpRun>* runs) {
  const Operands o(choices_, graph_, misaligned_, index, params);
  const Product whole = ProductOf(o);
  const bool moe = whole.ids.has_value();
  const bool quantized = quant::IsQuantized(whole.w.type);
  const uint32_t w = o.op().in[0], x = o.op().in[1];
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
  if (quantized && quantized_ != x) {
    why = o.Bind(QuantizeRun(whole), scratch, 4 * o.Elements(whole.x), runs);
    quantized_ = x;
    if (!why.empty()) return why;
  }
  if (NeedsLists(whole, choices_.products)) {
    if (!quantized) quantized_ = TRINE_NONE;  // the lists are where the activations were
    why = o.Bind(ListColumnsRun(whole, choices_.products), scratch, o.Elements(*whole.ids), runs);
    if (!why.empty()) return why;
  }
  for (const WeightWindow& window : windows) {
    Product part = whole;
    part.w.offset = window.skip;
    if (moe) {
      part.w.dims[2] = window.count;
      part.first_expert = window.first;
    } else {
      const uint64_t skipped = static_cast<uint64_t>(window.first) * sizeof(float);
      part.w.dims[1] = part.y.dims[0] = window.count;
      part.y.offset += skipped;
      if (part.bias) {
        part.bias->dims[0] = window.count;
        part.bias->offset += skipped;
      }
    }
    why = WhyNotProduct(part);
    if (!why.empty()) return why;
    const uint64_t operations = 2 * static_cast<uint64_t>(part.w.dims[0]) * o.Elements(part.y);
    KernelRun run = ProductRun(part, choices_.products);
    OpRun bound;
    for (const uint32_t operand : run.operands) {
      if (operand == kScratchOperand) {
        bound.operands.push_back(scratch);
      } else if (operand == 0) {
        bound.operands.push_back({w, window.offset, window.bytes});
      } else {
        bound.operands.push_back({o.TensorAt(operand), 0, o.BytesOf(o.TensorAt(operand))});
      }
    }
    bound.run = std::move(run);
    bound.operations = operations;
    runs->push_back(std::move(bound));
    why = o.WhyNotBound(runs->back());
    if (!why.empty()) return why;
  }
  return "";
}

std::string OpRuns::AddGather(size_t index, const int64_t* params, std::vector<OpRun>* runs) {
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

std::string OpRuns::AddAttention(size_t index, const int64_t* params, std::vector<OpRun>* runs) {
  const Operands o(choices_, graph_, misaligned_, index, params);
  AttentionViews views = AttentionViewsOf(o);
  TensorView sinks;
  if (o.Has(6)) {
    sinks = o.In(6);
    views.sinks = &sinks;
  }
  const auto attr = o.op().Attr<trine_attention_attr>();
  reference::AttentionParams attention;
  attention.scale = attr.scale;
  attention.softcap = attr.softcap;
  attention.window = attr.window;
  attention.causal = (attr.flags & TRINE_ATTENTION_CAUSAL) != 0;
  const int64_t positions = PositionsOf(graph_, views, params);
  AttentionCut cut = ChooseAttentionCut(views, positions, AttentionDeviceOf(*choices_.caps));
  if (AttentionScratchBytes(views, positions, cut) > scratch_.attention_bytes) cut.split = false;
  if (AttentionSharedBytes(views, cut) > choices_.caps->max_shared_bytes) {
    return "the heads are too wide for the device's shared memory";
  }
  const OpRun::Operand scratch{kScratchOperand, scratch_.product_bytes, scratch_.attention_bytes};
  const uint64_t operations =
      4 * o.Elements(views.q) * static_cast<uint64_t>(std::max<int64_t>(positions, 1));
  for (KernelRun& run : AttentionRuns(views, attention, positions, cut)) {
    std::string why = o.Bind(std::move(run), scratch, operations, runs);
    if (!why.empty()) return why;
  }
  return "";
}

std::string OpRuns::Add(size_t index, const int64_t* params, std::vector<OpRun>* runs) {
  const sdk::Op& op = graph_.ops[index];
  std::string why;
  if (IsProduct(op.kind)) {
    why = AddProduct(index, params, runs);
  } else if (op.kind == TRINE_OP_GATHER_ROWS) {
    why = AddGather(index, params, runs);
  } else if (op.kind == TRINE_OP_ATTENTION) {
    why = AddAttention(index, params, runs);
  } else {
    const Operands o(choices_, graph_, misaligned_, index, params);
    why = o.Bind(SimpleRun(choices_, o).Make(), {}, o.Elements(o.Out(0)), runs);
  }
  if (quantized_ != TRINE_NONE) {
    const uint32_t slot = graph_.tensors[quantized_].slot;
    for (const uint32_t t : op.out) {
      if (graph_.tensors[t].slot == slot) quantized_ = TRINE_NONE;
      if (quantized_ == TRINE_NONE) break;
    }
  }
  return why;
}

namespace {

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
    grow(AttentionScratchBytes(views, positions, cut), &scratch->attention_bytes);
  }
}

}  // namespace

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
  std::string why = WhyNotAttributes(graph.ops[index]);
  if (why.empty()) why = WhyNotInLayout(graph, index);
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
    OpRuns maker(choices, graph, scratch, misaligned);
    why = maker.Add(index, params.data(), &runs);
    if (!why.empty()) return why;
  }
  return "";
}

}  // namespace trine::vulkan
