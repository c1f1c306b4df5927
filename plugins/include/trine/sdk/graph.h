// Copies a graph out of the host's memory and checks it once, so that the rest of a backend may
// trust its indices, dimensions and extents.
#ifndef TRINE_SDK_GRAPH_H_
#define TRINE_SDK_GRAPH_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "trine/sdk/dtype.h"
#include "trine/sdk/status.h"

namespace trine::sdk {

using Dims = std::array<int64_t, TRINE_MAX_RANK>;

// A copy of a trine_op. Owns its operands and attributes.
struct Op {
  uint32_t kind = 0;
  std::vector<uint32_t> in;
  std::vector<uint32_t> out;
  std::vector<std::byte> attr;  // empty when absent

  // Returns the op's attributes as A. Members that the host did not know are 0.
  template <class A>
  A Attr() const {
    A value{};
    if (!attr.empty()) std::memcpy(&value, attr.data(), std::min(attr.size(), sizeof(A)));
    return value;
  }
  bool HasInput(size_t i) const { return i < in.size() && in[i] != TRINE_NONE; }
};

// A copy of a trine_graph. Owns everything.
struct Graph {
  uint32_t numerics = 0;
  std::vector<trine_slot> slots;
  std::vector<trine_tensor> tensors;
  std::vector<Op> ops;
  std::vector<trine_param> params;

  std::vector<int64_t> MaxParams() const {
    std::vector<int64_t> values;
    for (const trine_param& p : params) values.push_back(p.max);
    return values;
  }
};

// Returns a tensor's dimensions, with the run's parameters in place. Dimensions beyond its rank are
// 1.
inline Dims ResolveDims(const trine_tensor& t, const int64_t* params) {
  Dims dims{1, 1, 1, 1};
  for (uint32_t i = 0; i < t.rank; ++i)
    dims[i] = t.dims[i] >= 0 ? t.dims[i] : params[-t.dims[i] - 1];
  return dims;
}

// Returns all strides in bytes, with the 0s of the tensor replaced. strides[0] is the size of a
// block.
inline Dims ResolveStrides(const trine_tensor& t, const Dims& dims) {
  Dims strides{};
  strides[0] = FindDtype(t.dtype)->block_bytes;
  int64_t packed = ValueBytes(t.dtype, dims[0]);
  for (uint32_t i = 1; i < TRINE_MAX_RANK; ++i) {
    strides[i] = i < t.rank && t.strides[i] != 0 ? t.strides[i] : packed;
    packed = strides[i] * dims[i];
  }
  return strides;
}

namespace internal {

inline constexpr uint32_t kMaxItems = 1u << 20;  // the most slots, tensors, ops or parameters
inline constexpr uint32_t kMaxAlternates = 1u << 10;
inline constexpr int64_t kMaxBytes = int64_t{1} << 46;

// Returns the number of bytes from a tensor's first value to the end of its last, or -1 if a number
// is too large. Checks even what a dimension of 0 or a short stride would hide: every product of
// dimensions and strides that a loop over the tensor computes stays below kMaxBytes.
inline int64_t Extent(const trine_tensor& t, const Dims& dims) {
  const int64_t row = ValueBytes(t.dtype, dims[0]);
  if (row < 0 || row > kMaxBytes) return -1;
  int64_t packed = row, end = row, rows = 1;
  bool empty = dims[0] == 0;
  for (uint32_t i = 1; i < t.rank; ++i) {
    const int64_t stride = t.strides[i] != 0 ? t.strides[i] : packed;
    if (stride < 0 || stride > kMaxBytes || dims[i] > kMaxBytes / (stride + 1)) return -1;
    if (rows != 0 && dims[i] > kMaxBytes / rows) return -1;
    rows *= dims[i];
    packed = stride * dims[i];
    if (dims[i] == 0) {
      empty = true;
    } else {
      end += packed - stride;
    }
    if (end > kMaxBytes) return -1;
  }
  return empty ? 0 : end;
}

// Returns the alignment of rows: the largest power of two, up to 4, that divides a block.
inline uint32_t Alignment(uint32_t dtype) {
  const uint32_t bytes = FindDtype(dtype)->block_bytes;
  return std::min(bytes & (0u - bytes), 4u);
}

// Returns "" if the tensor is consistent with its slot and its type, else what is wrong.
inline std::string CheckTensor(const Graph& g, size_t index, const std::vector<int64_t>& max) {
  const trine_tensor& t = g.tensors[index];
  const std::string who = "tensor " + std::to_string(index);
  const Dtype* dtype = FindDtype(t.dtype);
  if (t.rank < 1 || t.rank > TRINE_MAX_RANK) return who + ": rank " + std::to_string(t.rank);
  if (t.slot >= g.slots.size()) return who + ": no slot " + std::to_string(t.slot);
  if (t.strides[0] != 0) return who + ": strides[0] must be 0";
  for (uint32_t i = 0; i < t.rank; ++i) {
    if (t.dims[i] < 0 && static_cast<uint64_t>(-(t.dims[i] + 1)) >= g.params.size()) {
      return who + ": dimension " + std::to_string(i) + " names no parameter";
    }
  }
  // A newer host may use a type whose size is not known here. CheckOp refuses the ops that use it.
  if (dtype == nullptr) return "";
  if (t.dims[0] < 0 && dtype->block != 1) return who + ": rows of blocks need a known length";
  uint64_t alignment_bits = t.offset;
  for (uint32_t i = 1; i < t.rank; ++i) alignment_bits |= static_cast<uint64_t>(t.strides[i]);
  if (alignment_bits % Alignment(t.dtype) != 0) return who + ": not aligned for its type";
  const Dims dims = ResolveDims(t, max.data());
  const int64_t extent = Extent(t, dims);
  if (extent < 0) return who + ": its size is no whole number of blocks, or too large";
  const uint64_t room = g.slots[t.slot].bytes;
  // Only the plugin knows the size of a tensor in the plugin's own layout.
  if (t.layout == TRINE_LAYOUT_PLAIN &&
      (t.offset > room || static_cast<uint64_t>(extent) > room - t.offset)) {
    return who + ": reaches beyond its slot";
  }
  return "";
}

inline std::string CheckStructure(const Graph& g) {
  if (g.numerics != TRINE_NUMERICS_EXACT && g.numerics != TRINE_NUMERICS_FAST) {
    return "numerics must be exact or fast";
  }
  for (const trine_param& p : g.params) {
    if (p.min < 0 || p.max < p.min) return "a parameter's range is empty or negative";
  }
  uint64_t total = 0;  // limited, because a sum that wraps would make a large scratch look small
  for (const trine_slot& s : g.slots) {
    if (s.alternates < 1) return "a slot has no alternate";
    if (s.role >= TRINE_ROLE_CONSTANT && s.role <= TRINE_ROLE_TEMP && s.role != TRINE_ROLE_IO &&
        s.alternates != 1) {
      return "only io slots have alternates";
    }
    if (s.alternates > kMaxAlternates) return "a slot has more than 1024 alternates";
    if (s.bytes > static_cast<uint64_t>(kMaxBytes) || (total += s.bytes) > kMaxBytes) {
      return "the slots are too large";
    }
  }
  const std::vector<int64_t> max = g.MaxParams();
  for (size_t i = 0; i < g.tensors.size(); ++i) {
    std::string wrong = CheckTensor(g, i, max);
    if (!wrong.empty()) return wrong;
  }
  for (const Op& op : g.ops) {
    for (uint32_t t : op.in) {
      if (t != TRINE_NONE && t >= g.tensors.size()) return "an op reads a tensor that is not there";
    }
    for (uint32_t t : op.out) {
      if (t >= g.tensors.size()) return "an op writes a tensor that is not there";
      if (g.slots[g.tensors[t].slot].role == TRINE_ROLE_CONSTANT) return "an op writes a constant";
    }
  }
  return "";
}

}  // namespace internal

// Copies and checks `in`. Returns INVALID_ARGUMENT with a sentence if the graph is inconsistent.
// Accepts ops, types and roles that this header does not know, because a newer host may use them:
// CheckOp refuses those ops one by one, and the others can still run.
inline trine_status CopyGraph(const trine_graph* in, Graph* out, trine_error* err) {
  if (in == nullptr) return Fail(err, TRINE_INVALID_ARGUMENT, "graph is null");
  const trine_graph g = ReadIn(in);
  if (g.n_slots > internal::kMaxItems || g.n_tensors > internal::kMaxItems ||
      g.n_ops > internal::kMaxItems || g.n_params > internal::kMaxItems) {
    return Fail(err, TRINE_INVALID_ARGUMENT,
                "the graph has more than 1048576 slots, tensors, ops or parameters");
  }
  if ((g.slots == nullptr && g.n_slots != 0) || (g.tensors == nullptr && g.n_tensors != 0) ||
      (g.ops == nullptr && g.n_ops != 0) || (g.params == nullptr && g.n_params != 0)) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "an array of the graph is null");
  }
  *out = Graph{};
  out->numerics = g.numerics;
  for (uint32_t i = 0; i < g.n_slots; ++i) out->slots.push_back(At(g.slots, g.slot_stride, i));
  for (uint32_t i = 0; i < g.n_tensors; ++i) {
    out->tensors.push_back(At(g.tensors, g.tensor_stride, i));
  }
  for (uint32_t i = 0; i < g.n_params; ++i) out->params.push_back(At(g.params, g.param_stride, i));
  for (uint32_t i = 0; i < g.n_ops; ++i) {
    const trine_op op = At(g.ops, g.op_stride, i);
    if (op.n_in > 64 || op.n_out > 64) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "an op has too many inputs or outputs");
    }
    if ((op.in == nullptr && op.n_in != 0) || (op.out == nullptr && op.n_out != 0)) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "an op's inputs or outputs are null");
    }
    Op copy;
    copy.kind = op.kind;
    copy.in.assign(op.in, op.in + op.n_in);
    copy.out.assign(op.out, op.out + op.n_out);
    if (op.attr != nullptr) {
      const auto* bytes = static_cast<const std::byte*>(op.attr);
      uint32_t size = 0;
      std::memcpy(&size, bytes, sizeof(size));
      if (size < sizeof(size) || size > 4096) {
        return Fail(err, TRINE_INVALID_ARGUMENT, "an op's attributes carry no plausible size");
      }
      copy.attr.assign(bytes, bytes + size);
    }
    out->ops.push_back(std::move(copy));
  }
  const std::string wrong = internal::CheckStructure(*out);
  return wrong.empty() ? TRINE_OK : Fail(err, TRINE_INVALID_ARGUMENT, wrong);
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_GRAPH_H_
