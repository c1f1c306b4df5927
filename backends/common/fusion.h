// Decides which ops of a graph a GPU does in one launch, and where activations are quantised. A
// launch and its barrier cost more than most ops, so adjacent ops form a group if one launch can do
// them all. The decision depends on the graph alone and is made once for a plan.
#pragma once

#include <cstdint>
#include <vector>

#include "trine/backend_sdk.h"

namespace trine::backends {

// Adjacent ops that the GPU does in one launch.
struct OpGroup {
  enum class Kind {
    kAlone,       // a single op, unless it is one of the following
    kNorm,        // rms_norm or layer_norm, with or without an add before it
    kGlu,         // a glu that also quantises its result
    kAttention,   // an attention that also quantises its result
    kRotate,      // rope of q, rope of k
    kStore,       // kv_store of k, kv_store of v
    kRotateStore  // rope of q and of k in any order, kv_store of the rotated k, kv_store of v
  };
  Kind kind = Kind::kAlone;
  uint32_t first = 0, count = 1;  // ops [first, first + count)
  // In a product: true if its activations must be quantised before it runs; false if an earlier
  // group has done that, or if the weights are floats. In other groups: true if the group also
  // quantises the output of its last op.
  bool quantizes = false;
  // False if no op reads the group's result as floats, so that the group need not write them to the
  // graph's tensor. The result is the last op's output, or in kRotateStore the rotated k. Attention
  // may write the floats nevertheless, because it uses the tensor as working memory.
  bool writes = true;

  bool operator==(const OpGroup&) const = default;
};

// Returns a group of this op alone. Sets `quantizes` for a product of quantised weights.
OpGroup AloneAt(const sdk::Graph& graph, uint32_t op);

// Divides all ops of a checked graph into groups, in order. If `fuse` is false, each op is a group;
// products of the same activations still quantise them only once.
std::vector<OpGroup> GroupOps(const sdk::Graph& graph, bool fuse);

// Returns whether the first of a group's two ropes rotates the k that the group stores.
bool RotatesKFirst(const sdk::Graph& graph, const OpGroup& group);

// Returns the group's name for time reports. The string is a constant.
const char* GroupName(const sdk::Graph& graph, const OpGroup& group);

}  // namespace trine::backends
