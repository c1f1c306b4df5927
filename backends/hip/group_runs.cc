#include "backends/hip/group_runs.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <string>

#include "backends/common/op_attributes.h"
#include "kernels/hip/attention/attention.h"
#include "kernels/hip/gemv/gemv.h"

namespace trine::hip {
namespace {

using backends::SameDims;
using Kind = OpGroup::Kind;

// The most rows of floats for which each block of a product computes the norm before it, as routers
// have them. With more rows a launch for the norm takes less time.
constexpr int64_t kMostNormedRows = 512;

class Joiner {
 public:
  Joiner(const sdk::Graph& graph, const std::vector<OpGroup>& groups, const int64_t* params)
      : graph_(graph), groups_(groups), params_(params), max_(graph.MaxParams()) {}

  // `added` is true if the run before has already done the first op of the group.
  GroupRun RunAt(uint32_t first, bool added) const {
    GroupRun run;
    run.first = first;
    run.added = added;
    if (IsAttendedAlong(first, groups_[first].first)) {
      run.attends = true;
      run.count = 2;
      return run;
    }
    if (!added && AreNormsOfHeads(first) && IsAttendedAlong(first + 2, groups_[first].first)) {
      run.attends = run.norms = true;
      run.count = 4;
      return run;
    }
    if (IsNormOfGlu(first, added)) {
      run.norm = run.glu = true;
      run.count = 4;
      return run;
    }
    if (IsRouteOfGlu(first)) {
      run.routes = run.glu = true;
      run.count = 4;
      return run;
    }
    if (IsNormOfFloats(first, added)) {
      run.norm = true;
      run.count = 2;
      return run;
    }
    if (!IsProductOfFew(first)) return run;
    while (run.count < kMaxGemvProducts && Joins(first, first + run.count)) ++run.count;
    if (run.count == 2 && IsGluOf(first)) {
      run.glu = true;
      run.count = 3;
    }
    if (run.count == 1 && IsCombined(first)) {
      run.combines = true;
      run.count = 2;
    }
    run.adds = !run.glu && run.products() == 1 && IsAddedTo(first, first + run.count - 1);
    return run;
  }

 private:
  const sdk::Op& OpOf(uint32_t group) const { return graph_.ops[groups_[group].first]; }
  const sdk::Op& LastOf(uint32_t group) const {
    return graph_.ops[groups_[group].first + groups_[group].count - 1];
  }
  const trine_tensor& In(const sdk::Op& op, size_t i) const { return graph_.tensors[op.in[i]]; }
  const trine_tensor& Out(const sdk::Op& op) const { return graph_.tensors[op.out[0]]; }
  const trine_tensor& In(uint32_t group, size_t i) const { return In(OpOf(group), i); }
  const trine_tensor& Out(uint32_t group) const { return Out(OpOf(group)); }

  // Returns the number of columns at the run's parameters.
  int64_t ColumnsOf(const trine_tensor& t) const {
    const sdk::Dims dims = sdk::ResolveDims(t, params_);
    return dims[1] * dims[2] * dims[3];
  }

  bool IsProductOfFew(uint32_t group) const {
    if (group >= groups_.size() || groups_[group].kind != Kind::kAlone) return false;
    const uint32_t kind = OpOf(group).kind;
    return backends::IsProduct(kind) &&
           ColumnsOf(Out(group)) <=
               (kind == TRINE_OP_MOE_MATMUL ? kGemvExpertColumns : kGemvColumns);
  }

  bool Joins(uint32_t product, uint32_t group) const {
    if (!IsProductOfFew(group) || groups_[group].quantizes) return false;
    if (OpOf(product).kind != OpOf(group).kind) return false;
    const trine_tensor &w = In(product, 0), &other = In(group, 0);
    if (!sdk::SameView(In(product, 1), In(group, 1)) || w.layout != other.layout ||
        w.dims[0] != other.dims[0] || (w.dtype != other.dtype && !AreMixed(product, group))) {
      return false;
    }
    if (OpOf(group).kind == TRINE_OP_MOE_MATMUL && !HaveSameExperts(product, group)) return false;
    for (uint32_t before = product; before < group; ++before) {
      if (!AreApart(Out(before), OpOf(group)) || !AreApart(Out(group), OpOf(before))) return false;
    }
    return true;
  }

  // Returns whether a launch can do products with weights of these two types.
  bool AreMixed(uint32_t product, uint32_t group) const {
    const auto mixes = [&](const trine_tensor& w) {
      return HasMixedGemv(static_cast<quant::Type>(w.dtype), w.layout != TRINE_LAYOUT_PLAIN);
    };
    return OpOf(product).kind == TRINE_OP_MATMUL && ColumnsOf(Out(product)) == 1 &&
           mixes(In(product, 0)) && mixes(In(group, 0));
  }
  // Returns whether two products with experts have the same ids, and the same places of experts.
  bool HaveSameExperts(uint32_t product, uint32_t group) const {
    const sdk::Op &a = OpOf(product), &b = OpOf(group);
    return sdk::SameView(In(a, 2), In(b, 2)) && SamePlaces(In(a, 0), In(b, 0)) &&
           a.HasInput(3) == b.HasInput(3) && (!a.HasInput(3) || SamePlaces(In(a, 3), In(b, 3)));
  }
  static bool SamePlaces(const trine_tensor& a, const trine_tensor& b) {
    return SameDims(a, b) && std::equal(a.strides, a.strides + a.rank, b.strides);
  }

  // Returns whether the op neither reads nor writes the tensor.
  bool AreApart(const trine_tensor& t, const sdk::Op& op) const {
    return !sdk::Overlap(t, Out(op), max_) && !Reads(op, t);
  }
  // Returns whether the op reads t. A product of quantised weights reads only the quantised copy of
  // x.
  bool Reads(const sdk::Op& op, const trine_tensor& t) const {
    const bool quantized = backends::IsQuantizedProduct(graph_, op);
    for (size_t i = 0; i < op.in.size(); ++i) {
      if (!op.HasInput(i) || (quantized && i == 1)) continue;
      const trine_tensor& in = In(op, i);
      // Only its plugin knows the size of a packed tensor.
      if (in.layout == TRINE_LAYOUT_PLAIN ? sdk::Overlap(t, in, max_) : in.slot == t.slot) {
        return true;
      }
    }
    return false;
  }

  // Returns whether only input `input` of op `reader` reads what `op` writes.
  bool IsReadBy(uint32_t op, uint32_t reader, size_t input) const {
    const sdk::Op& writer = graph_.ops[op];
    const sdk::LaterUses uses = sdk::UsesAfter(graph_, op, writer.out[0]);
    return sdk::SameView(Out(writer), In(graph_.ops[reader], input)) && !uses.outlives &&
           uses.reads.size() == 1 && uses.reads[0].op == reader && uses.reads[0].input == input;
  }

  // Returns whether the group after two products is the glu of their results, and only the
  // quantised values of the glu are used.
  bool IsGluOf(uint32_t gate) const {
    const uint32_t glu = gate + 2;
    if (glu >= groups_.size() || groups_[glu].kind != Kind::kGlu || groups_[glu].writes) {
      return false;
    }
    const trine_tensor& w = In(gate, 0);
    return w.dtype == In(gate + 1, 0).dtype &&
           HasGluGemv(static_cast<quant::Type>(w.dtype), w.layout != TRINE_LAYOUT_PLAIN) &&
           IsReadBy(groups_[gate].first, groups_[glu].first, 0) &&
           IsReadBy(groups_[gate + 1].first, groups_[glu].first, 1);
  }

  // Returns whether the group selects the experts of two products, which their glu joins. Every
  // block selects them, so none may write what another one reads. The weights must have all experts
  // that may be selected, because the launch does not check ids.
  bool IsRouteOfGlu(uint32_t group) const {
    const sdk::Op& route = OpOf(group);
    const uint32_t gate = group + 1;
    if (route.kind != TRINE_OP_MOE_ROUTE || Out(route).dims[0] > kMostRoutedUsed ||
        Out(route).dims[0] < 1 || !IsProductOfFew(gate) || OpOf(gate).kind != TRINE_OP_MOE_MATMUL ||
        groups_[gate].quantizes || !sdk::SameView(Out(route), In(gate, 2)) ||
        !Joins(gate, gate + 1) || !IsGluOf(gate)) {
      return false;
    }
    const int64_t experts = In(route, 0).dims[0];
    if (experts < 1 || experts > std::min(kMostRoutedExperts, In(gate, 0).dims[2])) return false;
    return std::none_of(route.out.begin(), route.out.end(),
                        [&](uint32_t out) { return Reads(route, graph_.tensors[out]); });
  }

  // Returns whether the group is a norm of one column that two products and their glu read, and its
  // sum is already computed. The run writes only quantised values, so it overwrites nothing that
  // the norm reads.
  bool IsNormOfGlu(uint32_t group, bool added) const {
    const OpGroup& norm = groups_[group];
    const sdk::Op& op = LastOf(group);
    return norm.kind == Kind::kNorm && op.kind == TRINE_OP_RMS_NORM && norm.quantizes &&
           !norm.writes && norm.count == (added ? 2u : 1u) && ColumnsOf(Out(op)) == 1 &&
           IsProductOfFew(group + 1) && OpOf(group + 1).kind == TRINE_OP_MATMUL &&
           sdk::SameView(Out(op), In(group + 1, 1)) && Joins(group + 1, group + 2) &&
           IsGluOf(group + 1);
  }

  // Returns whether the group is a norm of one column, which is quantised, and the next one a
  // product of few rows of floats with it; and its sum is already computed. Every block computes
  // the norm, so none may write what another one reads.
  bool IsNormOfFloats(uint32_t group, bool added) const {
    const OpGroup& norm = groups_[group];
    const sdk::Op& op = LastOf(group);
    if (norm.kind != Kind::kNorm || op.kind != TRINE_OP_RMS_NORM || !norm.quantizes ||
        norm.count != (added ? 2u : 1u) || ColumnsOf(Out(op)) != 1 || !IsProductOfFew(group + 1)) {
      return false;
    }
    const sdk::Op& product = OpOf(group + 1);
    const trine_tensor& w = In(product, 0);
    return product.kind == TRINE_OP_MATMUL && w.dtype == TRINE_DTYPE_F32 &&
           w.layout == TRINE_LAYOUT_PLAIN && w.dims[1] <= kMostNormedRows &&
           sdk::SameView(Out(op), In(product, 1)) && !Reads(op, Out(op)) &&
           !Reads(op, Out(product)) && !sdk::Overlap(Out(op), Out(product), max_) &&
           (!product.HasInput(2) || !sdk::Overlap(Out(op), In(product, 2), max_));
  }

  // Returns whether the next group combines the results of a product with experts, and nothing else
  // reads these.
  bool IsCombined(uint32_t product) const {
    if (product + 1 >= groups_.size() || OpOf(product).kind != TRINE_OP_MOE_MATMUL) return false;
    const trine_tensor& w = In(product, 0);
    return OpOf(product + 1).kind == TRINE_OP_MOE_COMBINE &&
           HasCombineGemv(static_cast<quant::Type>(w.dtype), w.layout != TRINE_LAYOUT_PLAIN,
                          w.dims[0]) &&
           IsReadBy(groups_[product].first, groups_[product + 1].first, 0) &&
           !Reads(OpOf(product), Out(product + 1)) &&
           !IsAmongWeights(product + 1, Out(product + 1));
  }
  // Returns whether t overlaps the weights that a combination reads.
  bool IsAmongWeights(uint32_t combination, const trine_tensor& t) const {
    return sdk::Overlap(t, In(combination, 1), max_);
  }

  // Returns whether the op behind the groups first to last, of which the first is a product, is an
  // add; nothing else reads what they write, and the product does not read the sum. The other
  // addend may have the sum's place, value for value.
  bool IsAddedTo(uint32_t first, uint32_t last) const {
    if (last + 1 >= groups_.size()) return false;
    const uint32_t at = groups_[last + 1].first;
    const sdk::Op& add = graph_.ops[at];
    const Kind kind = groups_[last + 1].kind;
    if (add.kind != TRINE_OP_ADD || (kind != Kind::kAlone && kind != Kind::kNorm)) return false;
    for (const size_t input : {0, 1}) {
      const trine_tensor &other = In(add, 1 - input), &sum = Out(add);
      if (IsReadBy(groups_[last].first, at, input) && SameDims(other, Out(last)) &&
          SameDims(sum, Out(last)) &&
          (sdk::SameView(sum, other) || !sdk::Overlap(sum, other, max_))) {
        return !Reads(OpOf(first), sum) && (first == last || !IsAmongWeights(last, sum));
      }
    }
    return false;
  }

  // Returns whether two groups are norms of heads, which only the rotations of the next group read,
  // each its own.
  bool AreNormsOfHeads(uint32_t group) const {
    const uint32_t next = group + 2;
    if (next >= groups_.size() || groups_[next].kind != Kind::kRotateStore) return false;
    for (const uint32_t i : {0, 1}) {
      const OpGroup& norm = groups_[group + i];
      const sdk::Op& op = OpOf(group + i);
      if (op.kind != TRINE_OP_RMS_NORM || norm.quantizes || !op.HasInput(1) ||
          In(op, 0).dims[0] > int64_t{kMostNormedHead} ||
          !IsReadBy(norm.first, groups_[next].first + i, 0)) {
        return false;
      }
      // Blocks store new rows while others still read what is normed.
      for (const uint32_t store : {2, 3}) {
        if (Reads(op, Out(graph_.ops[groups_[next].first + store]))) return false;
      }
    }
    return true;
  }

  // Returns whether the next group is attention that reads, for one token, the caches to which this
  // group stores, and nothing else reads the values that this group rotates. `first`: the first op
  // that the same launch does.
  bool IsAttendedAlong(uint32_t group, uint32_t first) const {
    const OpGroup& before = groups_[group];
    if (before.kind != Kind::kRotateStore || before.writes || group + 1 >= groups_.size()) {
      return false;
    }
    const uint32_t at = groups_[group + 1].first;
    const sdk::Op& attention = graph_.ops[at];
    if (attention.kind != TRINE_OP_ATTENTION || ColumnsOf(In(attention, 0)) == 0 ||
        sdk::ResolveDims(In(attention, 0), params_)[2] != 1) {
      return false;
    }
    const sdk::Op &k_store = graph_.ops[before.first + 2], &v_store = graph_.ops[before.first + 3];
    if (!sdk::SameView(Out(k_store), In(attention, 1)) ||
        !sdk::SameView(Out(v_store), In(attention, 2))) {
      return false;
    }
    const bool first_is_q = IsReadBy(before.first, at, 0);
    if (!first_is_q && !IsReadBy(before.first + 1, at, 0)) return false;
    // Blocks write y while others still read the rows, unless y is only quantised.
    if (!groups_[group + 1].quantizes || groups_[group + 1].writes) {
      for (uint32_t op = first; op < at; ++op) {
        if (Reads(graph_.ops[op], Out(attention))) return false;
      }
    }
    return true;
  }

  const sdk::Graph& graph_;
  const std::vector<OpGroup>& groups_;
  const int64_t* params_;
  const std::vector<int64_t> max_;
};

// Returns the one copy of a name, which is never freed.
const char* Kept(const std::string& name) {
  static std::mutex mutex;
  static auto& names = *new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  return names.insert(name).first->c_str();
}

}  // namespace

std::vector<GroupRun> JoinGroups(const sdk::Graph& graph, const std::vector<OpGroup>& groups,
                                 const int64_t* params, bool join) {
  const Joiner joiner(graph, groups, params);
  std::vector<GroupRun> runs;
  uint32_t held = 0;  // the place of the values that were quantised last
  bool added = false;
  for (uint32_t i = 0; i < groups.size(); i += runs.back().count) {
    GroupRun run;
    run.first = i;
    if (join) run = joiner.RunAt(i, added);
    added = run.adds;
    // Only the glu writes the second place, which has room for few columns.
    const uint32_t last = i + run.count - 1;
    if (groups[i].quantizes || (run.attends && groups[last].quantizes)) held = 0;
    run.from = held;
    if (run.glu) held = 1 - held;
    run.to = held;
    runs.push_back(run);
  }
  return runs;
}

const char* RunName(const sdk::Graph& graph, std::span<const OpGroup> groups, const GroupRun& run) {
  if (!run.joined() && !run.added) return backends::GroupName(graph, groups[run.first]);
  std::string name;
  for (uint32_t i = 0; i < run.count; ++i) {
    OpGroup group = groups[run.first + i];
    if (i == 0 && run.added) {
      if (group.count == 1) continue;
      ++group.first;
      --group.count;
    }
    if (!name.empty()) name += "+";
    name += backends::GroupName(graph, group);
  }
  if (run.adds) name += "+add";
  return name.empty() ? "nothing" : Kept(name);
}

}  // namespace trine::hip
