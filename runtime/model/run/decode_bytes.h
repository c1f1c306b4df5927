// Counts the bytes that decoding one token has to read; benchmarks compare a token's time with
// them. The counts come from the graph of the model's layers, so tensors that an architecture does
// not use are not counted.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/model/arch/segment_graph.h"

namespace trine {

struct DecodeBytes {
  // The keys or the values of one layer.
  struct Cache {
    uint64_t bytes_per_position = 0;
    int64_t window = 0;  // the most positions that the layer sees; 0: all
  };

  // The bytes of all weights that a token reads: every matrix once, but only one row of an
  // embedding that is not also the output matrix, and only those experts that a token uses. Norms
  // and biases have 32 bits per value, as in memory.
  uint64_t weights = 0;
  std::vector<Cache> caches;

  // Returns the cache bytes that a token reads if it sees `positions` positions, its own included.
  uint64_t Kv(int64_t positions) const;
  // Returns the mean of Kv over `n_tokens` consecutive tokens that follow `depth` others.
  double MeanKv(int64_t depth, int64_t n_tokens) const;
};

// Counts the bytes of a model with caches as in `limits`.
absl::StatusOr<DecodeBytes> CountDecodeBytes(const gguf::File& file, const ModelConfig& config,
                                             const SegmentLimits& limits);

}  // namespace trine
