#include "backends/common/fusion.h"

#include <algorithm>
#include <optional>

#include "backends/common/op_attributes.h"
#include "kernels/quant/block_types.h"

namespace trine::backends {
namespace {

using Kind = OpGroup::Kind;

bool IsNorm(const sdk::Op& op) {
  return op.kind == TRINE_OP_RMS_NORM || op.kind == TRINE_OP_LAYER_NORM;
}

// Returns whether the op may quantise what it writes.
bool MayQuantize(const sdk::Op& op) {
  return IsNorm(op) || op.kind == TRINE_OP_GLU || op.kind == TRINE_OP_ATTENTION;
}

bool IsPacked(const trine_tensor& t) {
  return std::all_of(t.strides, t.strides + t.rank, [](int64_t stride) { return stride == 0; });
}

// Returns the dimensions beginning with `first`, without dimensions of 1, which change no order.
std::vector<int64_t> Outer(const trine_tensor& t, uint32_t first) {
  std::vector<int64_t> dims(t.dims + first, t.dims + t.rank);
  dims.erase(std::remove(dims.begin(), dims.end(), 1), dims.end());
  return dims;
}

// Returns whether the first `inner` dimensions of t make the columns of x that a product reads.
bool SameColumns(const trine_tensor& t, uint32_t inner, const trine_tensor& x) {
  if (inner == 1 && sdk::SameView(t, x)) return true;
  if (t.slot != x.slot || t.offset != x.offset || t.dtype != x.dtype || t.rank < inner ||
      !IsPacked(t) || !IsPacked(x)) {
    return false;
  }
  int64_t length = 1;
  for (uint32_t i = 0; i < inner; ++i) {
    if (t.dims[i] < 0) return false;
    length *= t.dims[i];
  }
  return length == x.dims[0] && Outer(t, inner) == Outer(x, 1);
}

class Grouper {
 public:
  Grouper(const sdk::Graph& graph, bool fuse)
      : graph_(graph), fuse_(fuse), max_(graph.MaxParams()) {}

  std::vector<OpGroup> Run() {
    std::vector<OpGroup> groups;
    for (uint32_t i = 0; i < graph_.ops.size(); i += groups.back().count) {
      groups.push_back(GroupAt(i));
      Follow(groups.back());
    }
    return groups;
  }

 private:
  // The quantised activations in the scratch of products.
  struct Held {
    uint32_t tensor;
    uint32_t inner;  // number of leading dimensions that make a column
  };

  const trine_tensor& In(uint32_t op, size_t i) const {
    return graph_.tensors[graph_.ops[op].in[i]];
  }
  const trine_tensor& Out(uint32_t op) const { return graph_.tensors[graph_.ops[op].out[0]]; }
  uint32_t KindAt(uint32_t op) const {
    return op < graph_.ops.size() ? graph_.ops[op].kind : uint32_t{TRINE_NONE};
  }
  bool Meet(const trine_tensor& a, const trine_tensor& b) const {
    return a.slot == b.slot && sdk::Overlap(a, b, max_);
  }
  // Returns whether an op that computes each value by itself may write `to` while `from` is read.
  bool ApartOrInPlace(const trine_tensor& to, const trine_tensor& from) const {
    return !Meet(to, from) || sdk::SameView(to, from);
  }

  OpGroup GroupAt(uint32_t i) const {
    OpGroup group = AloneAt(graph_, i);
    if (group.quantizes) {
      group.quantizes = !held_ || !SameColumns(HeldTensor(), held_->inner, In(i, 1));
    }
    if (!fuse_) return group;
    JoinRotations(&group);
    if (JoinsAddAndNorm(i)) {
      group.kind = Kind::kNorm;
      group.count = 2;
    }
    if (MayQuantize(graph_.ops[i + group.count - 1])) DecideQuantizing(&group);
    if (group.quantizes && KindAt(i) == TRINE_OP_GLU) group.kind = Kind::kGlu;
    if (group.quantizes && KindAt(i) == TRINE_OP_ATTENTION) group.kind = Kind::kAttention;
    return group;
  }

  const trine_tensor& HeldTensor() const { return graph_.tensors[held_->tensor]; }

  // Returns how many leading dimensions of the op's output make a column of a product.
  uint32_t InnerDims(const sdk::Op& op) const { return op.kind == TRINE_OP_ATTENTION ? 2 : 1; }

  // Updates held_ to what the scratch holds after a group.
  void Follow(const OpGroup& group) {
    const uint32_t last = group.first + group.count - 1;
    const sdk::Op& op = graph_.ops[last];
    if (IsQuantizedProduct(graph_, op)) {
      if (group.quantizes) held_ = Held{op.in[1], 1};
    } else if (group.quantizes) {
      held_ = Held{op.out[0], InnerDims(op)};
      return;
    }
    for (uint32_t i = group.first; i <= last; ++i) {
      if (held_ && Ends(graph_.ops[i], HeldTensor())) held_.reset();
    }
  }

  // Returns whether an op that does not quantise invalidates the quantised copy of t.
  bool Ends(const sdk::Op& op, const trine_tensor& t) const {
    // The lists of experts may overwrite the quantised activations.
    if (op.kind == TRINE_OP_MOE_MATMUL && !IsQuantizedProduct(graph_, op)) return true;
    return std::any_of(op.out.begin(), op.out.end(),
                       [&](uint32_t out) { return Meet(graph_.tensors[out], t); });
  }

  // Decides whether the group quantises the output of its last op, and whether it writes the floats
  // as well. A reader needs no floats if it is a product that finds the quantised values in the
  // scratch. Any op in between that may invalidate them is assumed to do so.
  void DecideQuantizing(OpGroup* group) const {
    const uint32_t last = group->first + group->count - 1;
    const sdk::Op& op = graph_.ops[last];
    const trine_tensor& t = graph_.tensors[op.out[0]];
    if (t.dims[0] % quant::kGroupValues != 0 || t.dims[0] < 1 || t.rank > 3) return;
    const uint32_t inner = InnerDims(op);
    const sdk::LaterUses uses = sdk::UsesAfter(graph_, last, op.out[0]);
    bool held = true, found = false, floats = uses.outlives;
    uint32_t next = last + 1;
    for (const sdk::LaterUses::Read& read : uses.reads) {
      for (; held && next < read.op; ++next) held = !MayEnd(next, t, inner);
      const bool product = held && read.input == 1 &&
                           IsQuantizedProduct(graph_, graph_.ops[read.op]) &&
                           SameColumns(t, inner, In(read.op, 1));
      found |= product;
      floats |= !product;
    }
    group->quantizes = found;
    group->writes = floats || !found;
  }

  bool MayEnd(uint32_t op, const trine_tensor& t, uint32_t inner) const {
    const sdk::Op& other = graph_.ops[op];
    if (MayQuantize(other) || Ends(other, t)) return true;
    return IsQuantizedProduct(graph_, other) && !SameColumns(t, inner, In(op, 1));
  }

  bool JoinsAddAndNorm(uint32_t i) const {
    if (KindAt(i) != TRINE_OP_ADD || i + 1 >= graph_.ops.size() || !IsNorm(graph_.ops[i + 1])) {
      return false;
    }
    const sdk::Op& norm = graph_.ops[i + 1];
    const trine_tensor &a = In(i, 0), &b = In(i, 1), &sum = Out(i), &y = Out(i + 1);
    if (!sdk::SameView(sum, In(i + 1, 0)) || !SameDims(a, b) || Meet(sum, y)) return false;
    for (size_t weight = 1; weight < norm.in.size(); ++weight) {
      if (norm.HasInput(weight) && Meet(sum, In(i + 1, weight))) return false;
    }
    return ApartOrInPlace(sum, a) && ApartOrInPlace(sum, b) && ApartOrInPlace(y, a) &&
           ApartOrInPlace(y, b);
  }

  // Groups as many ropes and stores as can run together, beginning with the group's first op.
  void JoinRotations(OpGroup* group) const {
    const uint32_t i = group->first;
    if (KindAt(i) == TRINE_OP_KV_STORE && CanStore(i, i + 1, In(i, 0)) &&
        AreApart({i, i + 1}, std::nullopt)) {
      group->kind = Kind::kStore;
      group->count = 2;
      return;
    }
    if (!CanRotate(i)) return;
    for (const uint32_t of_k : {i + 1, i}) {
      if (!CanStore(i + 2, i + 3, Out(of_k)) || !AreApart({i, i + 1, i + 2, i + 3}, of_k)) continue;
      group->kind = Kind::kRotateStore;
      group->count = 4;
      // The store reads the rotated k. Its floats are written only if another op reads them too.
      const sdk::LaterUses uses = sdk::UsesAfter(graph_, of_k, graph_.ops[of_k].out[0]);
      group->writes =
          uses.outlives || std::any_of(uses.reads.begin(), uses.reads.end(),
                                       [&](const auto& read) { return read.op != i + 2; });
      return;
    }
    if (!AreApart({i, i + 1}, std::nullopt)) return;
    group->kind = Kind::kRotate;
    group->count = 2;
  }

  // Returns whether ops i and i + 1 are ropes with the same table.
  bool CanRotate(uint32_t i) const {
    if (KindAt(i) != TRINE_OP_ROPE || KindAt(i + 1) != TRINE_OP_ROPE) return false;
    const trine_tensor &a = In(i, 0), &b = In(i + 1, 0);
    return sdk::SameView(In(i, 1), In(i + 1, 1)) && HeadsAreKnown(a) && HeadsAreKnown(b) &&
           a.dims[0] == b.dims[0] && a.dims[2] == b.dims[2] && In(i, 1).dims[0] >= 0 &&
           graph_.ops[i].Attr<trine_rope_attr>().mode ==
               graph_.ops[i + 1].Attr<trine_rope_attr>().mode;
  }

  // Returns whether ops k and v are stores to the same KV slots, the first of them of x.
  bool CanStore(uint32_t k, uint32_t v, const trine_tensor& x) const {
    if (KindAt(k) != TRINE_OP_KV_STORE || KindAt(v) != TRINE_OP_KV_STORE) return false;
    const trine_tensor &keys = Out(k), &values = Out(v);
    return sdk::SameView(In(k, 0), x) && sdk::SameView(In(k, 1), In(v, 1)) &&
           keys.dtype != TRINE_DTYPE_Q8_KV && values.dtype != TRINE_DTYPE_Q8_KV &&
           HeadsAreKnown(x) && HeadsAreKnown(In(v, 0)) && x.dims[1] == In(v, 0).dims[1] &&
           x.dims[2] == In(v, 0).dims[2] && CacheIsKnown(keys) && CacheIsKnown(values) &&
           keys.dims[1] == values.dims[1] && keys.dims[3] == values.dims[3];
  }

  // Returns whether the sizes that are constants of a shader are known.
  static bool HeadsAreKnown(const trine_tensor& t) {
    return t.rank == 3 && t.dims[0] > 0 && t.dims[1] > 0;
  }
  static bool CacheIsKnown(const trine_tensor& t) { return t.rank == 4 && t.dims[1] > 0; }

  // Returns whether no op touches a tensor that another one writes, except for the store of the k
  // that `of_k` rotates.
  bool AreApart(const std::vector<uint32_t>& ops, std::optional<uint32_t> of_k) const {
    for (const uint32_t a : ops) {
      for (const uint32_t b : ops) {
        if (a == b) continue;
        if (Meet(Out(a), Out(b))) return false;
        for (size_t i = 0; i < graph_.ops[b].in.size(); ++i) {
          const bool stored = a == of_k && b == ops[2] && i == 0;
          if (!stored && Meet(Out(a), In(b, i))) return false;
        }
      }
      if (!ApartOrInPlace(Out(a), In(a, 0)) || Meet(Out(a), In(a, 1))) return false;
    }
    return true;
  }

  const sdk::Graph& graph_;
  const bool fuse_;
  const std::vector<int64_t> max_;
  std::optional<Held> held_;
};

}  // namespace

bool RotatesKFirst(const sdk::Graph& graph, const OpGroup& group) {
  return group.kind == Kind::kRotateStore &&
         !sdk::SameView(graph.tensors[graph.ops[group.first + 1].out[0]],
                        graph.tensors[graph.ops[group.first + 2].in[0]]);
}

OpGroup AloneAt(const sdk::Graph& graph, uint32_t op) {
  OpGroup group;
  group.first = op;
  if (IsNorm(graph.ops[op])) group.kind = Kind::kNorm;
  group.quantizes = IsQuantizedProduct(graph, graph.ops[op]);
  return group;
}

std::vector<OpGroup> GroupOps(const sdk::Graph& graph, bool fuse) {
  return Grouper(graph, fuse).Run();
}

const char* GroupName(const sdk::Graph& graph, const OpGroup& group) {
  const sdk::Op& last = graph.ops[group.first + group.count - 1];
  switch (group.kind) {
    case Kind::kAlone:
      return sdk::TimedName(graph, last);
    case Kind::kNorm: {
      static constexpr const char* kNames[2][2][2] = {
          {{"rms_norm", "rms_norm+quantize"}, {"add+rms_norm", "add+rms_norm+quantize"}},
          {{"layer_norm", "layer_norm+quantize"}, {"add+layer_norm", "add+layer_norm+quantize"}}};
      return kNames[last.kind == TRINE_OP_LAYER_NORM][group.count == 2][group.quantizes];
    }
    case Kind::kGlu:
      return "glu+quantize";
    case Kind::kAttention:
      return "attention+quantize";
    case Kind::kRotate:
      return "rope+rope";
    case Kind::kStore:
      return "kv_store+kv_store";
    case Kind::kRotateStore:
      return "rope+rope+kv_store+kv_store";
  }
  return "";
}

}  // namespace trine::backends
