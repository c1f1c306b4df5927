#include "backends/hip/product_runs.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "kernels/hip/gemv.h"
#include "kernels/hip/gemv_glu.h"

namespace trine::hip {
namespace {

using Kind = OpGroup::Kind;

class Joiner {
 public:
  Joiner(const sdk::Graph& graph, const std::vector<OpGroup>& groups, const int64_t* params)
      : graph_(graph), groups_(groups), params_(params), max_(graph.MaxParams()) {}

  GroupRun RunAt(uint32_t first) const {
    GroupRun run;
    run.first = first;
    if (!IsProductOfFew(first)) return run;
    while (run.count < kMaxGemvProducts && Joins(run, first + run.count)) ++run.count;
    if (run.count == 2 && IsGluOf(first)) {
      run.glu = true;
      run.count = 3;
    }
    return run;
  }

 private:
  const sdk::Op& OpOf(uint32_t group) const { return graph_.ops[groups_[group].first]; }
  const trine_tensor& In(uint32_t group, size_t i) const {
    return graph_.tensors[OpOf(group).in[i]];
  }
  const trine_tensor& Out(uint32_t group) const { return graph_.tensors[OpOf(group).out[0]]; }

  bool IsProductOfFew(uint32_t group) const {
    if (group >= groups_.size() || groups_[group].kind != Kind::kAlone ||
        OpOf(group).kind != TRINE_OP_MATMUL) {
      return false;
    }
    const sdk::Dims dims = sdk::ResolveDims(Out(group), params_);
    return dims[1] * dims[2] * dims[3] <= kGemvColumns;
  }

  bool Joins(const GroupRun& run, uint32_t group) const {
    if (!IsProductOfFew(group) || groups_[group].quantizes) return false;
    const trine_tensor &w = In(run.first, 0), &other = In(group, 0);
    if (!sdk::SameView(In(run.first, 1), In(group, 1)) || w.dtype != other.dtype ||
        w.layout != other.layout || w.dims[0] != other.dims[0]) {
      return false;
    }
    for (uint32_t before = run.first; before < group; ++before) {
      if (!AreApart(before, group) || !AreApart(group, before)) return false;
    }
    return true;
  }

  // Whether b neither reads nor writes what a writes.
  bool AreApart(uint32_t a, uint32_t b) const {
    if (sdk::Overlap(Out(a), Out(b), max_)) return false;
    const sdk::Op& op = OpOf(b);
    for (size_t i = 0; i < op.in.size(); ++i) {
      if (!op.HasInput(i)) continue;
      const trine_tensor& in = In(b, i);
      // Of what is packed only its plugin knows the size.
      const bool reads =
          in.layout == TRINE_LAYOUT_PLAIN ? sdk::Overlap(Out(a), in, max_) : in.slot == Out(a).slot;
      if (reads) return false;
    }
    return true;
  }

  // Whether the group behind two products is the glu of what they write, and all that becomes of
  // that is quantised.
  bool IsGluOf(uint32_t gate) const {
    const uint32_t up = gate + 1, glu = gate + 2;
    if (glu >= groups_.size() || groups_[glu].kind != Kind::kGlu || groups_[glu].writes) {
      return false;
    }
    const trine_tensor& w = In(gate, 0);
    return HasGluGemv(static_cast<quant::Type>(w.dtype), w.layout != TRINE_LAYOUT_PLAIN) &&
           IsReadByGluAlone(gate, glu, 0) && IsReadByGluAlone(up, glu, 1);
  }

  bool IsReadByGluAlone(uint32_t product, uint32_t glu, size_t input) const {
    const sdk::LaterUses uses =
        sdk::UsesAfter(graph_, groups_[product].first, OpOf(product).out[0]);
    return sdk::SameView(Out(product), In(glu, input)) && !uses.outlives &&
           uses.reads.size() == 1 && uses.reads[0].op == groups_[glu].first &&
           uses.reads[0].input == input;
  }

  const sdk::Graph& graph_;
  const std::vector<OpGroup>& groups_;
  const int64_t* params_;
  const std::vector<int64_t> max_;
};

// By type, number of products, and whether a glu follows.
using RunNames = std::map<std::tuple<uint32_t, uint32_t, bool>, std::string>;

RunNames MakeRunNames() {
  RunNames names;
  for (uint32_t dtype = TRINE_DTYPE_F32; dtype <= TRINE_DTYPE_MXFP4; ++dtype) {
    if (sdk::FindDtype(dtype) == nullptr) continue;
    const std::string one = std::string(sdk::OpName(TRINE_OP_MATMUL)) + " " + sdk::DtypeName(dtype);
    std::string all = one;
    for (uint32_t count = 2; count <= kMaxGemvProducts; ++count) {
      all += "+" + one;
      names[{dtype, count, false}] = all;
      names[{dtype, count, true}] = all + "+glu+quantize";
    }
  }
  return names;
}

}  // namespace

std::vector<GroupRun> JoinProducts(const sdk::Graph& graph, const std::vector<OpGroup>& groups,
                                   const int64_t* params, bool join) {
  const Joiner joiner(graph, groups, params);
  std::vector<GroupRun> runs;
  uint32_t held = 0;  // where what was last quantised is
  for (uint32_t i = 0; i < groups.size(); i += runs.back().count) {
    GroupRun run;
    run.first = i;
    if (join) run = joiner.RunAt(i);
    // The place of few columns is the glu's alone.
    if (groups[i].quantizes) held = 0;
    run.from = held;
    if (run.glu) held = 1 - held;
    run.to = held;
    runs.push_back(run);
  }
  return runs;
}

const char* RunName(const sdk::Graph& graph, std::span<const OpGroup> groups, const GroupRun& run) {
  static const RunNames names = MakeRunNames();
  const OpGroup& first = groups[run.first];
  if (run.count == 1) return backends::GroupName(graph, first);
  const uint32_t dtype = graph.tensors[graph.ops[first.first].in[0]].dtype;
  const auto found = names.find({dtype, run.count - (run.glu ? 1 : 0), run.glu});
  return found != names.end() ? found->second.c_str() : "matmul";
}

}  // namespace trine::hip
