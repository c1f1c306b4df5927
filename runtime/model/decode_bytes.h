// The memory that decoding one token has to read: what a token's speed is measured against. From
// the graph of the model's layers, so that whatever an architecture does not use does not count.
#ifndef TRINE_RUNTIME_MODEL_DECODE_BYTES_H_
#define TRINE_RUNTIME_MODEL_DECODE_BYTES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model_config.h"
#include "runtime/model/segment_graph.h"

namespace trine {

struct DecodeBytes {
  // Keys or values of a layer.
  struct Cache {
    uint64_t bytes_per_position = 0;
    int64_t window = 0;  // positions the layer sees at most; 0: all
  };

  // Every matrix once, of the embedding one row (all of it where it is the output matrix too), of a
  // layer's experts as many as a token uses. Norms and biases in the 32 bits they are kept in.
  uint64_t weights = 0;
  std::vector<Cache> caches;

  // Of a token that sees `positions`, its own included.
  uint64_t Kv(int64_t positions) const;
  // The mean of `n_tokens` tokens, one after the other, behind `depth` others.
  double MeanKv(int64_t depth, int64_t n_tokens) const;
};

absl::StatusOr<DecodeBytes> CountDecodeBytes(const gguf::File& file, const ModelConfig& config,
                                             const SegmentLimits& limits);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_DECODE_BYTES_H_
