#include "backends/vulkan/fused_runs.h"

#include <optional>
#include <utility>

#include "backends/common/op_attributes.h"
#include "kernels/vulkan/attention.h"
#include "kernels/vulkan/elementwise.h"
#include "kernels/vulkan/norm.h"

namespace trine::vulkan {
namespace {

using Kind = OpGroup::Kind;

class Maker {
 public:
  Maker(const RunChoices& choices, const sdk::Graph& graph, const Misalignment& misaligned,
        const OpGroup& group, const int64_t* params, OpRun::Operand scratch,
        std::vector<OpRun>* runs)
      : choices_(choices),
        graph_(graph),
        misaligned_(misaligned),
        group_(group),
        params_(params),
        scratch_(scratch),
        runs_(runs) {}

  std::string Make() const {
    switch (group_.kind) {
      case Kind::kNorm:
        return MakeNorm();
      case Kind::kGlu:
        return MakeGlu();
      default:
        return MakeRotateStore();
    }
  }

 private:
  // The group's op number i.
  Operands At(uint32_t i) const {
    return Operands(choices_, graph_, misaligned_, group_.first + i, params_);
  }
  const sdk::Op& OpAt(uint32_t i) const { return graph_.ops[group_.first + i]; }

  std::string MakeNorm() const {
    const uint32_t last = group_.count - 1;
    const Operands o = At(last);
    Norm norm;
    norm.centred = o.op().kind == TRINE_OP_LAYER_NORM;
    norm.x = o.In(0);
    norm.eps = o.op().Attr<trine_norm_attr>().eps;
    norm.y = o.Out(0);
    norm.writes_y = group_.writes;
    if (group_.quantizes) norm.quantized = 0;
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
        NormWorkgroup(norm.x.dims[0], choices_.caps->max_workgroup_invocations);
    return o.BindTo(NormRun(norm, workgroup), tensors, scratch_, 4 * o.Elements(norm.y), runs_);
  }

  std::string MakeGlu() const {
    const Operands o = At(0);
    const sdk::Op& op = o.op();
    return o.BindTo(
        GluQuantizeRun(o.In(0), o.In(1), backends::GluParamsOf(op), o.Out(0), group_.writes, 0),
        {op.in[0], op.in[1], op.out[0]}, scratch_, 8 * o.Elements(o.Out(0)), runs_);
  }

  // Which of two ropes rotates what is stored.
  bool FirstIsK() const {
    return group_.kind == Kind::kRotateStore &&
           !sdk::SameView(graph_.tensors[OpAt(1).out[0]], graph_.tensors[OpAt(2).in[0]]);
  }

  std::string MakeRotateStore() const {
    const bool rotates = group_.kind != Kind::kStore, stores = group_.kind != Kind::kRotate;
    std::vector<uint32_t> tensors(kValueCache + 1, TRINE_NONE);
    RotateStore work;
    uint64_t values = 0;
    if (rotates) {
      const bool swapped = FirstIsK();
      const Operands q = At(swapped ? 1 : 0), k = At(swapped ? 0 : 1);
      work.mode = backends::RopeModeOf(q.op());
      work.table = q.In(1);
      work.q = q.In(0);
      work.rotated_q = q.Out(0);
      work.k = k.In(0);
      if (group_.writes) work.rotated_k = k.Out(0);
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
    return At(0).BindTo(RotateStoreRun(work, choices_.tuning.elementwise_workgroup), tensors,
                        scratch_, 4 * values, runs_);
  }

  const RunChoices& choices_;
  const sdk::Graph& graph_;
  const Misalignment& misaligned_;
  const OpGroup& group_;
  const int64_t* params_;
  const OpRun::Operand scratch_;
  std::vector<OpRun>* runs_;
};

}  // namespace

std::string AddFusedRun(const RunChoices& choices, const sdk::Graph& graph,
                        const Misalignment& misaligned, const OpGroup& group, const int64_t* params,
                        OpRun::Operand scratch, std::vector<OpRun>* runs) {
  return Maker(choices, graph, misaligned, group, params, scratch, runs).Make();
}

}  // namespace trine::vulkan
