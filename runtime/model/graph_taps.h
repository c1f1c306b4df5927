// Which values of a segment can be looked at after a run, beyond its own outputs: what each layer
// hands on, or what each op gives. A tap costs the memory of its value, and nothing in bits: what
// runs is the same ops in the same order.
#ifndef TRINE_RUNTIME_MODEL_GRAPH_TAPS_H_
#define TRINE_RUNTIME_MODEL_GRAPH_TAPS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/model/segment_graph.h"

namespace trine {

enum class TapLevel : uint32_t {
  kNone = 0,
  kLayers = 1,  // the hidden state behind the embedding and behind each layer, and the output
  kOps = 2      // every output of every op
};

// One value: output `output` of an op. Of KV_STORE that is what it stores: the rows of the cache
// that belong to the run's tokens.
struct Tap {
  size_t op = 0;
  uint32_t output = 0;
  TensorId tensor = 0;
  bool is_cache = false;
};

// In the order of the ops. What a segment without the head hands on twice, to a tap and to its
// border, is a tap once; so the taps of a model's segments are those of the whole model.
std::vector<Tap> FindTaps(const SegmentGraph& segment, TapLevel level);

// Makes what they name outputs of the graph, which is not finished.
void ExposeTaps(const std::vector<Tap>& taps, SegmentGraph* segment);

// Bytes of a packed tensor at a run's parameters.
uint64_t BytesAt(const trine_tensor& tensor, std::span<const int64_t> params);

// Of a KV cache: bytes that one position takes in one head, and where they are.
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

#endif  // TRINE_RUNTIME_MODEL_GRAPH_TAPS_H_
