// Finds the taps of a segment: values that can be read after a run, beyond its outputs. A tap costs
// the memory of its value and does not change results: the same ops run in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/model/arch/segment_graph.h"

namespace trine {

enum class TapLevel : uint32_t {
  kNone = 0,
  kLayers = 1,  // the hidden state after the embedding and after each layer, and the output
  kOps = 2      // every output of every op
};

// One value: output `output` of an op. The value of a KV_STORE is the cache rows that it stores for
// the run's tokens.
struct Tap {
  size_t op = 0;
  uint32_t output = 0;
  TensorId tensor = 0;
  bool is_cache = false;
};

// Returns the taps in the order of the ops. The copy of a hidden state to the border is not a tap,
// so all segments of a model together have the taps of the whole model.
std::vector<Tap> FindTaps(const SegmentGraph& segment, TapLevel level);

// Makes the taps outputs of the graph. REQUIRES: segment->graph.Finish() has not been called.
void ExposeTaps(const std::vector<Tap>& taps, SegmentGraph* segment);

// Returns the bytes of a dense tensor in a run with these parameters.
uint64_t BytesAt(const trine_tensor& tensor, std::span<const int64_t> params);

// The rows of a KV cache: a row is one position of one head.
struct CacheRows {
  explicit CacheRows(const trine_tensor& cache);
  uint64_t OffsetOf(int32_t slot, int64_t head) const;
  uint64_t Bytes(size_t n_slots) const {
    return static_cast<uint64_t>(heads) * n_slots * row_bytes;
  }

  uint64_t row_bytes = 0;
  int64_t heads = 0;
};

}  // namespace trine
