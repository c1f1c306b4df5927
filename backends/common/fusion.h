// Which ops of a graph run as one, and where activations are quantised: from the graph alone, once
// for a plan. Ops that stand next to each other are put together where one run does what they do; a
// dispatch and its barrier cost more than most of them.
#ifndef TRINE_BACKENDS_COMMON_FUSION_H_
#define TRINE_BACKENDS_COMMON_FUSION_H_

#include <cstdint>
#include <vector>

#include "trine/backend_sdk.h"

namespace trine::backends {

struct OpGroup {
  enum class Kind {
    kAlone,       // one op
    kNorm,        // (add,) rms_norm or layer_norm; a norm is never kAlone
    kGlu,         // glu that quantises
    kAttention,   // attention that quantises
    kRotate,      // rope of q, rope of k
    kStore,       // kv_store of k, kv_store of v
    kRotateStore  // rope, rope, kv_store of what one of them rotated, kv_store
  };
  Kind kind = Kind::kAlone;
  uint32_t first = 0, count = 1;  // ops
  // A product: its activations must be quantised before it; false where they are already, or where
  // its weights are floats. Others: what the last op writes is quantised along.
  bool quantizes = false;
  // Whether what is quantised along, or a k that is stored, is also written as the graph has it:
  // somebody else reads it. Attention writes it anyway, and needs the room.
  bool writes = true;

  bool operator==(const OpGroup&) const = default;
};

// An op by itself, which quantises what it needs.
OpGroup AloneAt(const sdk::Graph& graph, uint32_t op);

// All ops of a graph that keep their rules, in order.
std::vector<OpGroup> GroupOps(const sdk::Graph& graph, bool fuse);

// A product of quantised weights.
bool IsQuantizedProduct(const sdk::Graph& graph, const sdk::Op& op);

// What a group is called where times are told: a constant.
const char* GroupName(const sdk::Graph& graph, const OpGroup& group);

}  // namespace trine::backends

#endif  // TRINE_BACKENDS_COMMON_FUSION_H_
