// Finds which bytes tensors use, and which ops read the result of another op. A backend needs to
// know both before it changes the order of ops or leaves out a result that is not used.
#ifndef TRINE_SDK_MEMORY_USE_H_
#define TRINE_SDK_MEMORY_USE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "trine/sdk/graph.h"

namespace trine::sdk {

// The bytes of a slot from a tensor's first byte to the end of its last one, gaps included.
struct ByteRange {
  uint32_t slot = 0;
  uint64_t begin = 0, end = 0;
};

// Returns a tensor's range at the parameters' maxima. REQUIRES: it is in the plain layout.
inline ByteRange RangeOf(const trine_tensor& t, const std::vector<int64_t>& max_params) {
  const Dims dims = ResolveDims(t, max_params.data());
  const Dims strides = ResolveStrides(t, dims);
  ByteRange range{t.slot, t.offset, t.offset};
  int64_t bytes = ValueBytes(t.dtype, dims[0]);
  for (size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] == 0) return range;
    bytes += (dims[i] - 1) * strides[i];
  }
  range.end += static_cast<uint64_t>(bytes);
  return range;
}

// Returns whether two tensors have the same type, the same dimensions and the same bytes.
inline bool SameView(const trine_tensor& a, const trine_tensor& b) {
  return a.dtype == b.dtype && a.rank == b.rank && a.slot == b.slot && a.offset == b.offset &&
         std::equal(a.dims, a.dims + a.rank, b.dims) &&
         std::equal(a.strides, a.strides + a.rank, b.strides);
}

namespace internal {

// A tensor divided along its outermost dimension, the only one that may be a parameter here.
struct OuterRows {
  uint64_t offset = 0;
  int64_t bytes = 0;    // bytes of one outer row
  int64_t stride = 0;   // bytes from one outer row to the next
  int64_t dim = 0;      // the outermost dimension as in the graph
  bool packed = false;  // no gaps inside rows or between them
};

inline std::optional<OuterRows> OuterRowsOf(const trine_tensor& t) {
  const uint32_t inner = t.rank == 1 ? 1 : t.rank - 1;
  trine_tensor one = t;
  if (t.rank > 1) one.dims[t.rank - 1] = 1;
  if (std::any_of(t.dims, t.dims + inner, [](int64_t dim) { return dim < 1; })) return std::nullopt;
  const Dims dims = ResolveDims(one, nullptr);
  const Dims strides = ResolveStrides(one, dims);
  OuterRows rows;
  rows.offset = t.offset;
  rows.bytes = ValueBytes(t.dtype, dims[0]);
  rows.packed = true;
  for (uint32_t i = 1; i < inner; ++i) {
    rows.packed &= strides[i] == rows.bytes;
    rows.bytes += (dims[i] - 1) * strides[i];
  }
  rows.stride = t.rank == 1 ? rows.bytes : strides[t.rank - 1];
  rows.dim = t.rank == 1 ? 1 : t.dims[t.rank - 1];
  rows.packed &= rows.stride == rows.bytes;
  return rows;
}

}  // namespace internal

// Returns whether two tensors may share a byte. Two tensors that are neighbouring columns of a
// matrix do not overlap.
inline bool Overlap(const trine_tensor& a, const trine_tensor& b,
                    const std::vector<int64_t>& max_params) {
  const ByteRange x = RangeOf(a, max_params), y = RangeOf(b, max_params);
  if (x.slot != y.slot || x.begin >= y.end || y.begin >= x.end) return false;
  const auto p = internal::OuterRowsOf(a), q = internal::OuterRowsOf(b);
  if (!p || !q || p->stride != q->stride) return true;
  const uint64_t p_end = p->offset + static_cast<uint64_t>(p->bytes);
  const uint64_t q_end = q->offset + static_cast<uint64_t>(q->bytes);
  const bool beside = p_end <= q->offset || q_end <= p->offset;
  const uint64_t both = std::max(p_end, q_end) - std::min(p->offset, q->offset);
  return !beside || both > static_cast<uint64_t>(p->stride);
}

// Returns whether `outer` contains every byte of `inner`, whatever the parameters are.
inline bool Covers(const trine_tensor& outer, const trine_tensor& inner,
                   const std::vector<int64_t>& max_params) {
  if (outer.slot != inner.slot) return false;
  if (SameView(outer, inner)) return true;
  const auto o = internal::OuterRowsOf(outer), i = internal::OuterRowsOf(inner);
  if (!o || !i || !o->packed || o->offset > i->offset) return false;
  if (o->dim == i->dim) {
    return o->stride >= i->stride && o->offset + static_cast<uint64_t>(o->bytes) >=
                                         i->offset + static_cast<uint64_t>(i->bytes);
  }
  return o->dim >= 0 && RangeOf(outer, max_params).end >= RangeOf(inner, max_params).end;
}

// The ops that read the value which an op gives a tensor, before other ops replace it.
struct LaterUses {
  struct Read {
    uint32_t op;
    size_t input;
  };
  std::vector<Read> reads;  // in the order of ops
  bool outlives = false;    // the value remains after the run: the slot is not TEMP
};

// Returns the reads of `tensor`, which op `op` writes, by later ops.
inline LaterUses UsesAfter(const Graph& graph, uint32_t op, uint32_t tensor) {
  const std::vector<int64_t> max = graph.MaxParams();
  const trine_tensor& t = graph.tensors[tensor];
  std::vector<uint32_t> written;  // tensors of later ops that replace parts of the value
  LaterUses uses;
  for (uint32_t j = op + 1; j < graph.ops.size(); ++j) {
    const Op& later = graph.ops[j];
    for (size_t i = 0; i < later.in.size(); ++i) {
      if (!later.HasInput(i)) continue;
      const trine_tensor& in = graph.tensors[later.in[i]];
      if (in.slot != t.slot || !Overlap(in, t, max)) continue;
      const bool newer = std::any_of(written.begin(), written.end(),
                                     [&](uint32_t w) { return Covers(graph.tensors[w], in, max); });
      if (!newer) uses.reads.push_back({j, i});
    }
    if (later.kind == TRINE_OP_KV_STORE) continue;  // writes only the rows of its tokens
    for (uint32_t out : later.out) {
      const trine_tensor& w = graph.tensors[out];
      if (w.slot != t.slot || !Overlap(w, t, max)) continue;
      if (Covers(w, t, max)) return uses;
      written.push_back(out);
    }
  }
  uses.outlives = graph.slots[t.slot].role != TRINE_ROLE_TEMP;
  return uses;
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_MEMORY_USE_H_
