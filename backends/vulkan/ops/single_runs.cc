#include "backends/vulkan/ops/single_runs.h"

#include <algorithm>

#include "backends/common/op_attributes.h"
#include "kernels/vulkan/runs/attention.h"
#include "kernels/vulkan/runs/simple.h"

namespace trine::vulkan {
namespace {

using Kind = OpGroup::Kind;

struct FusedRunMaker {
  const RunChoices& choices;
  const sdk::Graph& graph;
  const Misalignment& misaligned;
  const OpGroup& group;
  const int64_t* params;
  const OpRun::Operand scratch;
  std::vector<OpRun>* runs;

  std::string Make() const {
    switch (group.kind) {
      case Kind::kNorm:
        return MakeNorm();
      case Kind::kGlu:
        return MakeGlu();
      default:
        return MakeRotateStore();
    }
  }

  // Returns the operands of the group's op number i.
  Operands At(uint32_t i) const {
    return Operands(choices, graph, misaligned, group.first + i, params);
  }

  std::string MakeNorm() const {
    const uint32_t last = group.count - 1;
    const Operands o = At(last);
    Norm norm;
    norm.centred = o.op().kind == TRINE_OP_LAYER_NORM;
    norm.x = o.In(0);
    norm.eps = o.op().Attr<trine_norm_attr>().eps;
    norm.y = o.Out(0);
    norm.writes_y = group.writes;
    if (group.quantizes) norm.quantized = 0;
    std::vector<uint32_t> tensors(kNormY + 1, TRINE_NONE);
    tensors[kNormX] = o.op().in[0];
    tensors[kNormY] = o.op().out[0];
    if (o.Has(1)) {
      norm.weight = o.In(1);
      tensors[kNormWeight] = o.op().in[1];
    }
    if (o.Has(2)) {
      norm.bias = o.In(2);
      tensors[kNormBias] = o.op().in[2];
    }
    if (last == 1) {
      const Operands add = At(0);
      norm.x = add.In(0);
      norm.addend = add.In(1);
      norm.sum = add.Out(0);
      tensors[kNormX] = add.op().in[0];
      tensors[kNormAddend] = add.op().in[1];
      tensors[kNormSum] = add.op().out[0];
    }
    const uint32_t workgroup =
        NormWorkgroup(norm.x.dims[0], choices.caps->max_workgroup_invocations);
    return o.BindTo(NormRun(norm, workgroup), tensors, scratch, 4 * o.Elements(norm.y), runs);
  }

  std::string MakeGlu() const {
    const Operands o = At(0);
    const sdk::Op& op = o.op();
    return o.BindTo(
        GluQuantizeRun(o.In(0), o.In(1), backends::GluParamsOf(op), o.Out(0), group.writes, 0),
        {op.in[0], op.in[1], op.out[0]}, scratch, 8 * o.Elements(o.Out(0)), runs);
  }

  std::string MakeRotateStore() const {
    const bool rotates = group.kind != Kind::kStore, stores = group.kind != Kind::kRotate;
    std::vector<uint32_t> tensors(kValueCache + 1, TRINE_NONE);
    RotateStore work;
    uint64_t values = 0;
    if (rotates) {
      const bool swapped = backends::RotatesKFirst(graph, group);
      const Operands q = At(swapped ? 1 : 0), k = At(swapped ? 0 : 1);
      work.mode = backends::RopeModeOf(q.op());
      work.table = q.In(1);
      work.q = q.In(0);
      work.rotated_q = q.Out(0);
      work.k = k.In(0);
      if (group.writes) work.rotated_k = k.Out(0);
      tensors[kRotateTable] = q.op().in[1];
      tensors[kRotateQ] = q.op().in[0];
      tensors[kRotatedQ] = q.op().out[0];
      tensors[kRotateK] = k.op().in[0];
      tensors[kRotatedK] = k.op().out[0];
      values += q.Elements(*work.q) + k.Elements(work.k);
    }
    if (stores) {
      const uint32_t first = rotates ? 2 : 0;
      const Operands k = At(first), v = At(first + 1);
      if (!rotates) {
        work.k = k.In(0);
        tensors[kRotateK] = k.op().in[0];
      }
      work.slots = k.In(1);
      work.v = v.In(0);
      work.key_cache = k.Out(0);
      work.value_cache = v.Out(0);
      tensors[kStoreSlots] = k.op().in[1];
      tensors[kStoreV] = v.op().in[0];
      tensors[kKeyCache] = k.op().out[0];
      tensors[kValueCache] = v.op().out[0];
      values += v.Elements(*work.v);
    }
    return At(0).BindTo(RotateStoreRun(work, choices.tuning.elementwise_workgroup), tensors,
                        scratch, 4 * values, runs);
  }
};

// Multiples of the tiles and workgroups of any tuning.
constexpr int64_t kRowUnit = 64;
constexpr int64_t kTokenUnit = 8;

// Returns how many of `count` items, which have `operations` together, have about `most`
// operations: whole units, or at least one item.
int64_t ItemsOfPart(int64_t count, uint64_t operations, uint64_t most, int64_t unit) {
  if (operations <= most) return std::max<int64_t>(count, 1);
  const uint64_t each = std::max<uint64_t>(operations / static_cast<uint64_t>(count), 1);
  const auto items = static_cast<int64_t>(most / each);
  return std::clamp<int64_t>(items >= unit ? items / unit * unit : items, 1, count);
}

void Skip(TensorView* view, int dim, int64_t first, int64_t count) {
  const int64_t stride = dim == 0 ? static_cast<int64_t>(sizeof(float)) : view->strides[dim];
  view->offset += static_cast<uint64_t>(first * stride);
  view->dims[dim] = count;
}

AttentionViews TokensOf(const AttentionViews& whole, int64_t first, int64_t count) {
  AttentionViews part = whole;
  Skip(&part.q, 2, first, count);
  Skip(&part.y, 2, first, count);
  part.first_token = whole.first_token + first;
  return part;
}

// `sinks` is memory for the view that the part points to.
AttentionViews HeadsOf(const AttentionViews& whole, int64_t first, int64_t count,
                       TensorView* sinks) {
  const int64_t group = whole.q.dims[1] / whole.k.dims[2];
  AttentionViews part = whole;
  Skip(&part.q, 1, first * group, count * group);
  Skip(&part.y, 1, first * group, count * group);
  Skip(&part.k, 2, first, count);
  Skip(&part.v, 2, first, count);
  if (whole.sinks != nullptr) {
    *sinks = *whole.sinks;
    Skip(sinks, 0, first * group, count * group);
    part.sinks = sinks;
  }
  return part;
}

}  // namespace

KernelRun SimpleRun(const RunChoices& choices, const Operands& o) {
  const uint32_t usual = choices.tuning.elementwise_workgroup;
  // A power of two that the device allows; every device allows 128.
  const uint32_t whole = choices.caps->max_workgroup_invocations >= 256 ? 256 : 128;
  switch (o.op().kind) {
    case TRINE_OP_COPY:
      return CopyRun(o.In(0), o.Out(0), usual);
    case TRINE_OP_ROPE:
      return RopeRun(o.In(0), o.In(1), backends::RopeModeOf(o.op()), o.Out(0), usual);
    case TRINE_OP_KV_STORE:
      return KvStoreRun(o.In(0), o.In(1), o.Out(0), whole);
    case TRINE_OP_GLU:
      return GluRun(o.In(0), o.In(1), backends::GluParamsOf(o.op()), o.Out(0), usual);
    case TRINE_OP_ACTIVATION:
      return ActivationRun(o.In(0), backends::ActivationOf(o.op()), o.Out(0), usual);
    case TRINE_OP_ADD:
      return AddRun(o.In(0), o.In(1), o.Out(0), usual);
    case TRINE_OP_MUL:
      return MulRun(o.In(0), o.In(1), o.Out(0), usual);
    case TRINE_OP_SCALE:
      return ScaleRun(o.In(0), o.op().Attr<trine_scale_attr>().scale, o.Out(0), usual);
    case TRINE_OP_SOFTCAP:
      return SoftcapRun(o.In(0), o.op().Attr<trine_scale_attr>().scale, o.Out(0), usual);
    case TRINE_OP_MOE_ROUTE: {
      const TensorView bias = o.Has(1) ? o.In(1) : TensorView{};
      return MoeRouteRun(o.In(0), o.Has(1) ? &bias : nullptr, backends::RouteParamsOf(o.op()),
                         o.Out(0), o.Out(1), whole);
    }
    case TRINE_OP_MOE_COMBINE:
      return MoeCombineRun(o.In(0), o.In(1), o.Out(0), whole);
    default:
      return TopKRun(o.In(0), o.Out(0), o.Out(1), whole);
  }
}

std::string AddFusedRun(const RunChoices& choices, const sdk::Graph& graph,
                        const Misalignment& misaligned, const OpGroup& group, const int64_t* params,
                        OpRun::Operand scratch, std::vector<OpRun>* runs) {
  return FusedRunMaker{choices, graph, misaligned, group, params, scratch, runs}.Make();
}

Product RowsOf(const Product& whole, int64_t first, int64_t count) {
  Product part = whole;
  Skip(&part.w, 1, first, count);
  Skip(&part.y, 0, first, count);
  if (part.bias) Skip(&*part.bias, 0, first, count);
  return part;
}

uint64_t OperationsOf(const Product& product) {
  return 2 * static_cast<uint64_t>(product.w.dims[0]) *
         static_cast<uint64_t>(product.y.dims[0] * Rows(product.y));
}

std::vector<Product> CutProduct(const Product& whole, uint64_t most) {
  const int64_t rows = whole.w.dims[1];
  const int64_t of_part =
      std::max(ItemsOfPart(rows, OperationsOf(whole), most, kRowUnit), kRowUnit);
  if (rows <= of_part) return {whole};
  std::vector<Product> parts;
  for (int64_t first = 0; first < rows; first += of_part) {
    parts.push_back(RowsOf(whole, first, std::min(of_part, rows - first)));
  }
  return parts;
}

uint64_t OperationsOf(const AttentionViews& views, int64_t positions) {
  return 2 * static_cast<uint64_t>(views.k.dims[0] + views.v.dims[0]) *
         static_cast<uint64_t>(views.q.dims[1] * views.q.dims[2]) *
         static_cast<uint64_t>(std::max<int64_t>(positions, 1));
}

std::string CutAttention(const AttentionViews& whole, int64_t positions, uint64_t most,
                         const std::function<std::string(const AttentionViews& part)>& add) {
  const int64_t tokens = whole.q.dims[2], heads = whole.k.dims[2];
  if (OperationsOf(whole, positions) <= most) return add(whole);
  const int64_t n = ItemsOfPart(tokens, OperationsOf(whole, positions), most, kTokenUnit);
  for (int64_t token = 0; token < tokens; token += n) {
    const AttentionViews row = TokensOf(whole, token, std::min(n, tokens - token));
    const int64_t h = ItemsOfPart(heads, OperationsOf(row, positions), most, 1);
    for (int64_t head = 0; head < heads; head += h) {
      TensorView sinks;
      const AttentionViews part = HeadsOf(row, head, std::min(h, heads - head), &sinks);
      if (std::string why = add(part); !why.empty()) return why;
    }
  }
  return "";
}

}  // namespace trine::vulkan
