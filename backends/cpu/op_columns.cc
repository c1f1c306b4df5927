#include "backends/cpu/op_columns.h"

namespace trine::cpu {
namespace {

using reference::Range;
using reference::View;

constexpr int64_t kFloatBytes = 4;

View Narrow(const View& view, int dim, Range range) {
  View narrow = view;
  narrow.data += range.begin * (dim == 0 ? kFloatBytes : view.strides[dim]);
  narrow.dims[dim] = range.end - range.begin;
  return narrow;
}

// The op on part of its values: all of a share's features, in every row.
void RunFeatures(const OpCall& c, Share share) {
  const Range range = share.Of(c.out[0]->dims[0], kFeatureMultiple);
  if (range.begin >= range.end) return;
  OpCall part = c;
  const View a = Narrow(*c.in[0], 0, range), y = Narrow(*c.out[0], 0, range);
  View b;
  part.in[0] = &a;
  part.out[0] = &y;
  if (c.in[1] != nullptr) {
    b = Narrow(*c.in[1], 0, range);
    part.in[1] = &b;
  }
  FindOpFunction(c.op->kind)(part, Share{});
}

// The op on some of its heads, for every token. What is beside its first input is by token alone.
void RunHeads(const OpCall& c, Share share) {
  const Range range = share.Of(c.in[0]->dims[1]);
  if (range.begin >= range.end) return;
  OpCall part = c;
  const int dst_heads = c.op->kind == TRINE_OP_KV_STORE ? 2 : 1;  // a cache has positions before
  const View x = Narrow(*c.in[0], 1, range), y = Narrow(*c.out[0], dst_heads, range);
  part.in[0] = &x;
  part.out[0] = &y;
  FindOpFunction(c.op->kind)(part, Share{});
}

}  // namespace

OpFunction FindColumnFunction(uint32_t kind, bool by_heads) {
  if (by_heads) return RunHeads;
  const bool has_own = kind == TRINE_OP_MATMUL || kind == TRINE_OP_MOE_MATMUL;
  return has_own ? FindOpFunction(kind) : RunFeatures;
}

}  // namespace trine::cpu
