// Which bytes a call of a plan touches, and how a split of its work divides them: what decides
// whether two calls need a barrier between them.
#ifndef TRINE_BACKENDS_CPU_ACCESS_H_
#define TRINE_BACKENDS_CPU_ACCESS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "trine/backend_sdk.h"

namespace trine::cpu {

// How a call's work is cut into parts.
enum class Split {
  kShares,   // as the op itself cuts it: nothing is known of who touches what
  kRows,     // by the outermost index of its tensors: tokens
  kColumns,  // by values of the innermost rows, or by heads: features, of all tokens
};

// The bytes that belong to each part. Calls whose patterns agree touch the same bytes in the same
// part.
struct Pattern {
  uint64_t offset = 0;
  int64_t bytes = 0;   // kRows: of one part; kColumns: of all parts, at one index outside
  int64_t stride = 0;  // kRows: from part to part
  // Dimensions as the graph has them, parameters and all. kRows: how many parts there are, alone;
  // kColumns: what lies outside, with its strides.
  std::array<int64_t, 2> dims{};
  std::array<int64_t, 2> strides{};
};

// A run of bytes of a slot, or of a space behind the last slot: from the first to the last that is
// touched, whatever lies in between.
struct Access {
  uint32_t space = 0;
  uint64_t begin = 0, end = 0;
  bool writes = false;
  std::optional<Pattern> pattern;  // none: any part may touch any of it
};
using Accesses = std::vector<Access>;

// Whether one writes what the other touches.
bool Meet(const Access& a, const Access& b);
bool Meet(const Accesses& a, const Accesses& b);

// Whether wherever they meet, the same part touches the same bytes; both are of one split.
bool MeetInParts(const Accesses& a, const Accesses& b, Split split);

// An op's accesses under a split. Weights are left out: nobody writes them. Nothing when the op
// can't be split so. `activations`: an access that stands for input 1, which the op then does not
// read; or null.
std::optional<Accesses> AccessesOf(const sdk::Graph& graph, const sdk::Op& op, Split split,
                                   const std::vector<int64_t>& max_params,
                                   const Access* activations);

// The access to a whole tensor, with its pattern under the split where it has one.
Access AccessTo(const sdk::Graph& graph, uint32_t tensor, Split split, bool by_heads,
                const std::vector<int64_t>& max_params);

// Ops on [d, heads, tokens] that kColumns splits by heads.
bool SplitsByHeads(const sdk::Graph& graph, const sdk::Op& op);

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_ACCESS_H_
