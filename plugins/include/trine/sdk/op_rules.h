// Checks the shapes and types of each op against the comments of trine/backend.h. A backend may
// index the operands of an op that passed CheckOp without further checks.
#ifndef TRINE_SDK_OP_RULES_H_
#define TRINE_SDK_OP_RULES_H_

#include <string>
#include <vector>

#include "trine/sdk/graph.h"

namespace trine::sdk {

inline const char* OpName(uint32_t kind) {
  static constexpr const char* kNames[] = {
      nullptr,    "copy",      "gather_rows", "rms_norm",    "layer_norm", "matmul", "rope",
      "kv_store", "attention", "glu",         "activation",  "add",        "mul",    "scale",
      "softcap",  "moe_route", "moe_matmul",  "moe_combine", "top_k"};
  return kind >= 1 && kind <= TRINE_OP_TOP_K ? kNames[kind] : "unknown op";
}

inline bool IsFloat(uint32_t dtype) {
  return dtype == TRINE_DTYPE_F32 || dtype == TRINE_DTYPE_F16 || dtype == TRINE_DTYPE_BF16;
}
inline bool IsWeight(uint32_t dtype) {
  return FindDtype(dtype) != nullptr && dtype != TRINE_DTYPE_I32 && dtype != TRINE_DTYPE_Q8_KV;
}
inline bool IsKv(uint32_t dtype) { return IsFloat(dtype) || dtype == TRINE_DTYPE_Q8_KV; }

namespace internal {

// The sizes of the attribute structs in ABI 1.0. They stay when the structs grow, because hosts of
// ABI 1.0 send the short ones.
inline constexpr size_t kNormAttr = 8;
inline constexpr size_t kRopeAttr = 8;
inline constexpr size_t kAttentionAttr = 20;
inline constexpr size_t kGluAttr = 16;
inline constexpr size_t kActivationAttr = 8;
inline constexpr size_t kScaleAttr = 8;
inline constexpr size_t kMoeRouteAttr = 16;

// An op's operands with their dimensions at one set of parameters. Its methods check rules; `wrong`
// keeps the first rule that is broken.
class OpShapes {
 public:
  OpShapes(const Graph& graph, const Op& op, const int64_t* params)
      : graph_(graph), op_(op), params_(params) {}

  const std::string& wrong() const { return wrong_; }
  bool ok() const { return wrong_.empty(); }
  bool Has(size_t i) const { return op_.HasInput(i); }
  const trine_tensor& In(size_t i) const { return graph_.tensors[op_.in[i]]; }
  const trine_tensor& Out(size_t i) const { return graph_.tensors[op_.out[i]]; }
  Dims InDims(size_t i) const { return ResolveDims(In(i), params_); }
  Dims OutDims(size_t i) const { return ResolveDims(Out(i), params_); }

  void Need(bool condition, const char* rule) {
    if (ok() && !condition) wrong_ = std::string(OpName(op_.kind)) + ": " + rule;
  }
  // Checks that the first `required` inputs are there, and that there are at most `all`.
  bool Arity(size_t required, size_t all, size_t outputs) {
    Need(op_.in.size() >= required && op_.in.size() <= all, "wrong number of inputs");
    for (size_t i = 0; ok() && i < required; ++i) Need(Has(i), "a required input is absent");
    Need(op_.out.size() == outputs, "wrong number of outputs");
    return ok();
  }
  void Attr(size_t bytes) { Need(op_.attr.size() >= bytes, "attributes missing or too short"); }
  // Checks that this header knows the type and the slot's role of every operand.
  void Known() {
    for (const auto* list : {&op_.in, &op_.out}) {
      for (uint32_t t : *list) {
        if (!ok() || t == TRINE_NONE) continue;
        const trine_tensor& tensor = graph_.tensors[t];
        if (FindDtype(tensor.dtype) == nullptr) {
          wrong_ = std::string(OpName(op_.kind)) + ": unknown type " + std::to_string(tensor.dtype);
        }
        const uint32_t role = graph_.slots[tensor.slot].role;
        Need(role >= TRINE_ROLE_CONSTANT && role <= TRINE_ROLE_TEMP, "a slot of an unknown role");
      }
    }
  }
  // Checks that a dimension is no parameter. A dimension that divides or bounds another one must be
  // a constant: a rule that holds at both ends of a parameter's range may fail between them.
  void Constant(const trine_tensor& t, uint32_t dim) {
    Need(dim >= t.rank || t.dims[dim] >= 0, "a dimension must be a constant");
  }
  void F32(size_t i) { Need(!Has(i) || In(i).dtype == TRINE_DTYPE_F32, "an input must be f32"); }
  void I32(size_t i) { Need(In(i).dtype == TRINE_DTYPE_I32, "indices must be i32"); }
  void OutF32(size_t i) { Need(Out(i).dtype == TRINE_DTYPE_F32, "the output must be f32"); }
  void Weight(size_t i) { Need(IsWeight(In(i).dtype), "the weights' type is no weight type"); }
  void Vector(size_t i, int64_t n) {
    if (Has(i)) Need(InDims(i) == Dims{n, 1, 1, 1}, "a vector's length does not fit");
  }

 private:
  const Graph& graph_;
  const Op& op_;
  const int64_t* params_;
  std::string wrong_;
};

inline void CheckElementWise(OpShapes& s, size_t inputs) {
  if (!s.Arity(inputs, inputs, 1)) return;
  const Dims y = s.OutDims(0);
  for (size_t i = 0; i < inputs; ++i) {
    s.F32(i);
    s.Need(s.InDims(i) == y, "dimensions differ");
  }
  s.OutF32(0);
}

inline void CheckBroadcast(OpShapes& s) {
  if (!s.Arity(2, 2, 1)) return;
  const Dims a = s.InDims(0), b = s.InDims(1);
  s.F32(0);
  s.F32(1);
  s.OutF32(0);
  s.Need(a == s.OutDims(0), "dimensions differ");
  for (size_t i = 0; i < a.size(); ++i) s.Need(b[i] == a[i] || b[i] == 1, "b does not broadcast");
}

inline void CheckCopy(OpShapes& s) {
  if (!s.Arity(1, 1, 1)) return;
  const uint32_t from = s.In(0).dtype, to = s.Out(0).dtype;
  s.Need(s.InDims(0) == s.OutDims(0), "dimensions differ");
  s.Need(from == to || (IsFloat(from) && IsFloat(to)), "no conversion between these types");
}

inline void CheckNorm(OpShapes& s, size_t inputs) {
  if (!s.Arity(1, inputs, 1)) return;
  s.Attr(kNormAttr);
  for (size_t i = 0; i < inputs; ++i) s.F32(i);
  s.OutF32(0);
  s.Need(s.InDims(0) == s.OutDims(0), "dimensions differ");
  s.Need(s.InDims(0)[0] > 0, "rows are empty");
  for (size_t i = 1; i < inputs; ++i) s.Vector(i, s.InDims(0)[0]);
}

inline void CheckGather(OpShapes& s) {
  if (!s.Arity(2, 2, 1)) return;
  const Dims table = s.InDims(0), ids = s.InDims(1);
  s.Weight(0);
  s.I32(1);
  s.OutF32(0);
  s.Need(s.OutDims(0) == Dims{table[0], ids[0], 1, 1} && table[2] == 1 && table[3] == 1 &&
             ids[1] == 1 && ids[2] == 1 && ids[3] == 1,
         "dimensions do not fit");
}

inline void CheckMatmul(OpShapes& s) {
  if (!s.Arity(2, 3, 1)) return;
  const Dims w = s.InDims(0), x = s.InDims(1);
  s.Weight(0);
  s.F32(1);
  s.F32(2);
  s.OutF32(0);
  s.Need(w[0] == x[0] && w[2] == 1 && w[3] == 1 && x[2] == 1 && x[3] == 1 &&
             s.OutDims(0) == Dims{w[1], x[1], 1, 1},
         "dimensions do not fit");
  s.Vector(2, w[1]);
}

inline void CheckRope(OpShapes& s) {
  if (!s.Arity(2, 2, 1)) return;
  const Dims x = s.InDims(0), table = s.InDims(1);
  s.Attr(kRopeAttr);
  s.F32(0);
  s.F32(1);
  s.OutF32(0);
  s.Need(x == s.OutDims(0) && x[3] == 1, "dimensions differ");
  s.Need(
      table[0] % 2 == 0 && table[0] <= x[0] && table[1] == x[2] && table[2] == 1 && table[3] == 1,
      "the table does not fit");
}

inline void CheckCache(OpShapes& s, const trine_tensor& t, const Dims& cache) {
  s.Need(IsKv(t.dtype), "the cache's type is no KV type");
  s.Need(cache[1] > 0 && TRINE_KV_CHUNK % cache[1] == 0, "a KV block's positions must divide 256");
}

inline void CheckKvStore(OpShapes& s) {
  if (!s.Arity(2, 2, 1)) return;
  const Dims x = s.InDims(0), cache = s.OutDims(0);
  s.F32(0);
  s.I32(1);
  CheckCache(s, s.Out(0), cache);
  s.Need(x[0] == cache[0] && x[1] == cache[2] && x[3] == 1, "the cache does not fit");
  s.Vector(1, x[2]);
}

inline void CheckAttention(OpShapes& s) {
  if (!s.Arity(6, 7, 1)) return;
  const Dims q = s.InDims(0), k = s.InDims(1), v = s.InDims(2), table = s.InDims(3);
  s.Attr(kAttentionAttr);
  s.F32(0);
  CheckCache(s, s.In(1), k);
  CheckCache(s, s.In(2), v);
  for (size_t i = 3; i < 6; ++i) s.I32(i);
  s.F32(6);
  s.OutF32(0);
  s.Need(q[0] == k[0] && k[1] == v[1] && k[2] == v[2] && k[3] == v[3], "q, k and v do not fit");
  s.Constant(s.In(0), 1);
  s.Constant(s.In(1), 1);
  s.Constant(s.In(1), 2);
  s.Need(q[0] > 0 && v[0] > 0 && q[1] > 0, "there are no heads, or they have no values");
  s.Need(k[2] > 0 && q[1] % k[2] == 0, "heads are no multiple of the KV heads");
  s.Need(q[3] == 1 && s.OutDims(0) == Dims{v[0], q[1], q[2], 1}, "the output does not fit");
  s.Need(table[2] == 1 && table[3] == 1, "the block table has two dimensions");
  s.Vector(4, s.InDims(4)[0]);
  s.Need(s.InDims(4)[0] >= table[1] + 1, "q_offsets needs one entry more than there are sequences");
  s.Vector(5, table[1]);
  s.Vector(6, q[1]);
}

inline void CheckMoeRoute(OpShapes& s) {
  if (!s.Arity(1, 2, 2)) return;
  const Dims x = s.InDims(0), ids = s.OutDims(0);
  s.Attr(kMoeRouteAttr);
  s.F32(0);
  s.F32(1);
  s.Need(s.Out(0).dtype == TRINE_DTYPE_I32, "ids must be i32");
  s.OutF32(1);
  s.Vector(1, x[0]);
  s.Constant(s.In(0), 0);
  s.Constant(s.Out(0), 0);
  s.Need(ids == s.OutDims(1) && ids[0] >= 1 && ids[0] <= x[0] && ids[1] == x[1] && x[2] == 1 &&
             x[3] == 1 && ids[2] == 1 && ids[3] == 1,
         "dimensions do not fit");
}

inline void CheckMoeMatmul(OpShapes& s) {
  if (!s.Arity(3, 4, 1)) return;
  const Dims w = s.InDims(0), x = s.InDims(1), ids = s.InDims(2);
  s.Weight(0);
  s.F32(1);
  s.I32(2);
  s.F32(3);
  s.OutF32(0);
  s.Need(w[0] == x[0] && w[3] == 1 && (x[1] == ids[0] || x[1] == 1) && x[2] == ids[1] &&
             x[3] == 1 && ids[2] == 1 && ids[3] == 1 &&
             s.OutDims(0) == Dims{w[1], ids[0], ids[1], 1},
         "dimensions do not fit");
  if (s.Has(3)) s.Need(s.InDims(3) == Dims{w[1], w[2], 1, 1}, "the bias does not fit");
}

inline void CheckMoeCombine(OpShapes& s) {
  if (!s.Arity(2, 2, 1)) return;
  const Dims x = s.InDims(0), w = s.InDims(1);
  s.F32(0);
  s.F32(1);
  s.OutF32(0);
  s.Need(x[1] > 0 && w == Dims{x[1], x[2], 1, 1} && s.OutDims(0) == Dims{x[0], x[2], 1, 1} &&
             x[3] == 1,
         "dimensions do not fit");
}

inline void CheckTopK(OpShapes& s) {
  if (!s.Arity(1, 1, 2)) return;
  const Dims x = s.InDims(0), ids = s.OutDims(0);
  s.F32(0);
  s.Need(s.Out(0).dtype == TRINE_DTYPE_I32, "ids must be i32");
  s.OutF32(1);
  s.Constant(s.In(0), 0);
  s.Constant(s.Out(0), 0);
  s.Need(ids == s.OutDims(1) && ids[0] >= 1 && ids[0] <= x[0] && ids[1] == x[1] && x[2] == 1 &&
             x[3] == 1 && ids[2] == 1 && ids[3] == 1,
         "dimensions do not fit");
}

inline void CheckOne(OpShapes& s, const Op& op) {
  switch (op.kind) {
    case TRINE_OP_COPY:
      return CheckCopy(s);
    case TRINE_OP_GATHER_ROWS:
      return CheckGather(s);
    case TRINE_OP_RMS_NORM:
      return CheckNorm(s, 2);
    case TRINE_OP_LAYER_NORM:
      return CheckNorm(s, 3);
    case TRINE_OP_MATMUL:
      return CheckMatmul(s);
    case TRINE_OP_ROPE:
      return CheckRope(s);
    case TRINE_OP_KV_STORE:
      return CheckKvStore(s);
    case TRINE_OP_ATTENTION:
      return CheckAttention(s);
    case TRINE_OP_GLU:
      s.Attr(kGluAttr);
      return CheckElementWise(s, 2);
    case TRINE_OP_ACTIVATION:
      s.Attr(kActivationAttr);
      return CheckElementWise(s, 1);
    case TRINE_OP_SCALE:
    case TRINE_OP_SOFTCAP:
      s.Attr(kScaleAttr);
      return CheckElementWise(s, 1);
    case TRINE_OP_ADD:
    case TRINE_OP_MUL:
      return CheckBroadcast(s);
    case TRINE_OP_MOE_ROUTE:
      return CheckMoeRoute(s);
    case TRINE_OP_MOE_MATMUL:
      return CheckMoeMatmul(s);
    case TRINE_OP_MOE_COMBINE:
      return CheckMoeCombine(s);
    case TRINE_OP_TOP_K:
      return CheckTopK(s);
    default:
      s.Need(false, "this plugin does not know it");
  }
}

}  // namespace internal

// Returns "" if op `index` of a copied graph keeps its rules for all values of the parameters, else
// the rule that it breaks. Tries all parameters at their maxima, all at their minima, and each one
// alone at its minimum, so that it notices if two parameters with equal ranges are mixed up.
inline std::string CheckOp(const Graph& graph, size_t index) {
  const Op& op = graph.ops[index];
  const auto broken_at = [&](const std::vector<int64_t>& params) {
    internal::OpShapes shapes(graph, op, params.data());
    shapes.Known();
    if (shapes.ok()) internal::CheckOne(shapes, op);
    return shapes.wrong();
  };
  const std::vector<int64_t> max = graph.MaxParams();
  std::vector<int64_t> min;
  for (const trine_param& p : graph.params) min.push_back(p.min);
  std::string wrong = broken_at(max);
  if (wrong.empty()) wrong = broken_at(min);
  for (size_t i = 0; wrong.empty() && i < graph.params.size(); ++i) {
    std::vector<int64_t> one = max;
    one[i] = min[i];
    wrong = broken_at(one);
  }
  return wrong;
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_OP_RULES_H_
