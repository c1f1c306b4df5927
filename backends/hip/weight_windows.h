// Turns a graph whose weights lie in host memory into a graph that brings weights to the device for
// each product. A large product is divided into windows of rows. Windows change no bit, because
// each row of a product is computed by itself. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/common/fusion.h"
#include "trine/backend_sdk.h"

namespace trine::hip {

// Where the memory of a CONSTANT slot lies.
enum class ConstantPlace {
  kDevice,
  kPinned,   // in host memory that kernels see
  kPageable  // in host memory that kernels don't see
};

// A tensor that kernels find in a stage. It is made up of pieces of its slot, which follow each
// other in the stage.
struct StagedTensor {
  struct Piece {
    uint64_t offset = 0;  // from the slot's start
    uint64_t bytes = 0;

    bool operator==(const Piece&) const = default;
  };
  std::vector<Piece> pieces;

  uint64_t Bytes() const;
  uint64_t RoomBytes() const;  // the bytes that it takes in a stage
};

// The graph that is run, with the tensors that must be brought into a stage first.
struct WindowedGraph {
  sdk::Graph graph;
  std::vector<std::optional<StagedTensor>> staged;  // for each tensor; one op reads each
  // Returns whether any tensor is staged.
  bool any() const;
  // Returns the staged tensors that the ops of a group read.
  std::vector<uint32_t> StagedIn(const backends::OpGroup& group) const;
  // Returns the most bytes that a group needs in a stage.
  uint64_t StageBytes(const std::vector<backends::OpGroup>& groups) const;
};

// Staged tensors begin at multiples of this.
inline constexpr uint64_t kStageAlignment = 256;

// Pinned weights of a product are read in place if they have at most this many bytes. Other pinned
// tensors are always read in place: vectors, and tables of which few rows are read.
inline constexpr uint64_t kReadInPlace = 16 << 10;

// Makes the graph that is run. `places` has an entry for each slot. A window has at most
// `window_bytes`, or one row.
WindowedGraph WindowWeights(const sdk::Graph& graph, const std::vector<ConstantPlace>& places,
                            uint64_t window_bytes);

}  // namespace trine::hip
