// A graph whose weights lie in the host's memory, as it runs: each product reads weights that are
// brought to the device for it, a window of rows at a time where there are many. Every row of a
// product is its own, so that windows change no bit. Pure.
#ifndef TRINE_BACKENDS_HIP_WEIGHT_WINDOWS_H_
#define TRINE_BACKENDS_HIP_WEIGHT_WINDOWS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/common/fusion.h"
#include "trine/backend_sdk.h"

namespace trine::hip {

// Where the memory that a CONSTANT slot is bound to lies.
enum class ConstantPlace {
  kDevice,
  kPinned,   // the host's; kernels see it
  kPageable  // the host's; they don't
};

// A tensor that kernels find in a stage: the bytes of its slot that make it up, one behind the
// other.
struct StagedTensor {
  struct Piece {
    uint64_t offset = 0;  // from the slot's start
    uint64_t bytes = 0;

    bool operator==(const Piece&) const = default;
  };
  std::vector<Piece> pieces;

  uint64_t Bytes() const;
  uint64_t RoomBytes() const;  // that it takes in a stage
};

struct WindowedGraph {
  sdk::Graph graph;
  std::vector<std::optional<StagedTensor>> staged;  // by tensor; each is read by one op

  bool any() const;
  // Those that the ops of a group read.
  std::vector<uint32_t> StagedIn(const backends::OpGroup& group) const;
  // The most that a group needs in a stage.
  uint64_t StageBytes(const std::vector<backends::OpGroup>& groups) const;
};

// What staged tensors begin at multiples of.
inline constexpr uint64_t kStageAlignment = 256;

// Pinned weights of a product that are no larger are read where they are, as is all else that is
// pinned: tables, of which a few rows are read, and vectors.
inline constexpr uint64_t kReadInPlace = 16 << 10;

// `places` is by slot. Windows have at most `window_bytes`, or one row.
WindowedGraph WindowWeights(const sdk::Graph& graph, const std::vector<ConstantPlace>& places,
                            uint64_t window_bytes);

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_WEIGHT_WINDOWS_H_
