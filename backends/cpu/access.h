// Finds the bytes that a call of a plan touches, and how a split of its work divides them. They
// decide whether two calls need a barrier between them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "trine/backend_sdk.h"

namespace trine::cpu {

// How a call's work is cut into parts.
enum class Split {
  kShares,   // as the op itself cuts it: it is not known which part touches which bytes
  kRows,     // by the outermost index of its tensors (tokens)
  kColumns,  // by values of the innermost rows (features) or by heads; each part has all tokens
};

// The bytes that belong to each part of a split. If the patterns of two calls agree, each part
// touches the same bytes in both calls.
struct Pattern {
  uint64_t offset = 0;
  int64_t bytes = 0;   // kRows: bytes of one part; kColumns: of all parts, at one outer index
  int64_t stride = 0;  // kRows: bytes from one part to the next
  // Dimensions as the graph has them, which may be parameters. kRows: dims[0] is the number of
  // parts, the rest is unused; kColumns: the outer dimensions, with their strides.
  std::array<int64_t, 2> dims{};
  std::array<int64_t, 2> strides{};
};

// A range of bytes of a slot, or of a space after the last slot. It goes from the first to the last
// byte that is touched, gaps included.
struct Access {
  uint32_t space = 0;
  uint64_t begin = 0, end = 0;
  bool writes = false;
  std::optional<Pattern> pattern;  // nullopt: any part may touch any byte
};
using Accesses = std::vector<Access>;

// Returns whether the two share bytes and at least one of them writes them.
bool Meet(const Access& a, const Access& b);
bool Meet(const Accesses& a, const Accesses& b);

// Returns whether, under `split`, no part of one call shares bytes with another part of the other
// call (unless both only read them).
bool MeetInParts(const Accesses& a, const Accesses& b, Split split);

// Returns an op's accesses under a split, or nullopt if the op can't be split that way. Leaves out
// weights, which are never written. `activations`, if not null, replaces the access to input 1,
// which the op then does not read.
std::optional<Accesses> AccessesOf(const sdk::Graph& graph, const sdk::Op& op, Split split,
                                   const std::vector<int64_t>& max_params,
                                   const Access* activations);

// Returns the access to a whole tensor, with its pattern under the split if it has one.
Access AccessTo(const sdk::Graph& graph, uint32_t tensor, Split split, bool by_heads,
                const std::vector<int64_t>& max_params);

// Returns whether kColumns splits the op, on [d, heads, tokens], by heads.
bool SplitsByHeads(const sdk::Graph& graph, const sdk::Op& op);

}  // namespace trine::cpu
