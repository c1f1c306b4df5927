#include "backends/cpu/access.h"

#include <algorithm>

#include "backends/common/op_attributes.h"

namespace trine::cpu {
namespace {

using backends::SameDims;

constexpr int64_t kFloatBytes = 4;

// Returns whether all dimensions but the last are constants, so that it is known where parts lie.
bool InnerDimsKnown(const trine_tensor& t) {
  return t.rank >= 2 && t.rank <= 3 &&
         std::all_of(t.dims, t.dims + t.rank - 1, [](int64_t dim) { return dim > 0; });
}

std::optional<Pattern> RowPattern(const trine_tensor& t, const sdk::Dims& strides) {
  if (!InnerDimsKnown(t)) return std::nullopt;
  Pattern p;
  p.offset = t.offset;
  p.bytes = sdk::ValueBytes(t.dtype, t.dims[0]);
  if (t.rank == 3) p.bytes += (t.dims[1] - 1) * strides[1];
  p.stride = strides[t.rank - 1];
  p.dims[0] = t.dims[t.rank - 1];
  return p.bytes <= p.stride ? std::optional(p) : std::nullopt;
}

std::optional<Pattern> ColumnPattern(const trine_tensor& t, const sdk::Dims& strides,
                                     bool by_heads) {
  if (!InnerDimsKnown(t) || t.dtype != TRINE_DTYPE_F32) return std::nullopt;
  Pattern p;
  p.offset = t.offset;
  p.bytes = t.dims[0] * kFloatBytes;
  if (by_heads) {
    if (t.rank != 3 || strides[1] != p.bytes) return std::nullopt;
    p.bytes *= t.dims[1];
    p.dims = {t.dims[2], 0};
    p.strides = {strides[2], 0};
  } else {
    p.dims = {t.dims[1], t.rank == 3 ? t.dims[2] : 0};
    p.strides = {strides[1], t.rank == 3 ? strides[2] : 0};
  }
  return p;
}

bool Agree(const Pattern& a, const Pattern& b, Split split) {
  if (a.dims != b.dims || a.strides != b.strides || a.stride != b.stride) return false;
  if (split == Split::kColumns) return a.offset == b.offset && a.bytes == b.bytes;
  // If both together fit between one part and the next, no part reaches into another.
  const uint64_t begin = std::min(a.offset, b.offset);
  const uint64_t end = std::max(a.offset + static_cast<uint64_t>(a.bytes),
                                b.offset + static_cast<uint64_t>(b.bytes));
  return end - begin <= static_cast<uint64_t>(a.stride);
}

bool IsRowOp(uint32_t kind) {
  switch (kind) {
    case TRINE_OP_COPY:
    case TRINE_OP_GATHER_ROWS:
    case TRINE_OP_RMS_NORM:
    case TRINE_OP_LAYER_NORM:
    case TRINE_OP_GLU:
    case TRINE_OP_ACTIVATION:
    case TRINE_OP_ADD:
    case TRINE_OP_MUL:
    case TRINE_OP_SCALE:
    case TRINE_OP_SOFTCAP:
    case TRINE_OP_MOE_ROUTE:
    case TRINE_OP_MOE_COMBINE:
      return true;
    default:
      return false;
  }
}

bool IsColumnOp(const sdk::Graph& graph, const sdk::Op& op) {
  switch (op.kind) {
    case TRINE_OP_MATMUL:
    case TRINE_OP_MOE_MATMUL:
    case TRINE_OP_GLU:
    case TRINE_OP_ACTIVATION:
    case TRINE_OP_SCALE:
    case TRINE_OP_SOFTCAP:
    case TRINE_OP_MOE_COMBINE:
      return true;
    case TRINE_OP_ADD:
    case TRINE_OP_MUL:
      return SameDims(graph.tensors[op.in[0]], graph.tensors[op.in[1]]);
    default:
      return SplitsByHeads(graph, op);
  }
}

// Returns whether the split divides the input. If not, every part may read all of it.
bool InputIsSplit(const sdk::Graph& graph, const sdk::Op& op, Split split, size_t input) {
  switch (op.kind) {
    case TRINE_OP_MATMUL:
    case TRINE_OP_MOE_MATMUL:
    case TRINE_OP_GATHER_ROWS:
      return false;
    case TRINE_OP_ADD:
    case TRINE_OP_MUL:
      return input == 0 || SameDims(graph.tensors[op.in[0]], graph.tensors[op.in[1]]);
    case TRINE_OP_GLU:
      return true;
    case TRINE_OP_MOE_COMBINE:
      return input == 0 || split == Split::kRows;  // the weights have no features
    default:
      return input == 0;
  }
}

}  // namespace

bool SplitsByHeads(const sdk::Graph& graph, const sdk::Op& op) {
  const bool per_head = op.kind == TRINE_OP_ROPE || op.kind == TRINE_OP_KV_STORE ||
                        op.kind == TRINE_OP_RMS_NORM || op.kind == TRINE_OP_LAYER_NORM;
  return per_head && graph.tensors[op.in[0]].rank == 3;
}

bool Meet(const Access& a, const Access& b) {
  return (a.writes || b.writes) && a.space == b.space && a.begin < b.end && b.begin < a.end;
}

bool Meet(const Accesses& a, const Accesses& b) {
  return std::any_of(a.begin(), a.end(), [&](const Access& x) {
    return std::any_of(b.begin(), b.end(), [&](const Access& y) { return Meet(x, y); });
  });
}

bool MeetInParts(const Accesses& a, const Accesses& b, Split split) {
  return std::all_of(a.begin(), a.end(), [&](const Access& x) {
    return std::all_of(b.begin(), b.end(), [&](const Access& y) {
      return !Meet(x, y) || (x.pattern && y.pattern && Agree(*x.pattern, *y.pattern, split));
    });
  });
}

Access AccessTo(const sdk::Graph& graph, uint32_t tensor, Split split, bool by_heads,
                const std::vector<int64_t>& max_params) {
  const trine_tensor& t = graph.tensors[tensor];
  const sdk::Dims strides = sdk::ResolveStrides(t, sdk::ResolveDims(t, max_params.data()));
  const sdk::ByteRange range = sdk::RangeOf(t, max_params);
  Access access{range.slot, range.begin, range.end, false, std::nullopt};
  if (split == Split::kRows) access.pattern = RowPattern(t, strides);
  if (split == Split::kColumns) access.pattern = ColumnPattern(t, strides, by_heads);
  return access;
}

std::optional<Accesses> AccessesOf(const sdk::Graph& graph, const sdk::Op& op, Split split,
                                   const std::vector<int64_t>& max_params,
                                   const Access* activations) {
  if (split == Split::kRows && !IsRowOp(op.kind)) return std::nullopt;
  if (split == Split::kColumns && !IsColumnOp(graph, op)) return std::nullopt;
  const bool by_heads = SplitsByHeads(graph, op);
  Accesses accesses;
  for (size_t i = 0; i < op.in.size(); ++i) {
    if (!op.HasInput(i)) continue;
    if (graph.slots[graph.tensors[op.in[i]].slot].role == TRINE_ROLE_CONSTANT) continue;
    if (i == 1 && activations != nullptr) {
      accesses.push_back(*activations);
      continue;
    }
    const bool is_split = InputIsSplit(graph, op, split, i);
    accesses.push_back(
        AccessTo(graph, op.in[i], is_split ? split : Split::kShares, by_heads, max_params));
    if (is_split && split != Split::kShares && !accesses.back().pattern) return std::nullopt;
  }
  for (uint32_t t : op.out) {
    // A cache's heads lie at other offsets than the stored tensor's, so it has no pattern.
    const bool is_split = op.kind != TRINE_OP_KV_STORE;
    accesses.push_back(AccessTo(graph, t, is_split ? split : Split::kShares, by_heads, max_params));
    accesses.back().writes = true;
    if (is_split && split != Split::kShares && !accesses.back().pattern) return std::nullopt;
  }
  // Parts are counted by the outermost index, so all tensors must have the same one.
  const auto other_parts = [&](const Access& a) {
    return a.pattern && a.pattern->dims[0] != accesses.back().pattern->dims[0];
  };
  if (split == Split::kRows && std::any_of(accesses.begin(), accesses.end(), other_parts)) {
    return std::nullopt;
  }
  return accesses;
}

}  // namespace trine::cpu
