#include "runtime/model/run/decode_bytes.h"

#include <algorithm>
#include <map>

#include "kernels/quant/block_types.h"
#include "runtime/model/arch/read_model.h"

namespace trine {
namespace {

// Returns the bytes of the whole weight as a plan reads it.
uint64_t WholeBytes(const WeightUse& use) {
  if (!use.as_f32) return use.info->bytes;
  return sizeof(float) * static_cast<uint64_t>(use.info->dims[0] * use.info->Rows());
}

uint64_t BytesRead(const WeightUse& use, uint32_t op, const ExpertConfig& experts) {
  const uint64_t bytes = WholeBytes(use);
  if (op == TRINE_OP_GATHER_ROWS) return bytes / static_cast<uint64_t>(use.info->Rows());
  if (op == TRINE_OP_MOE_MATMUL) {
    return bytes / static_cast<uint64_t>(experts.count) * static_cast<uint64_t>(experts.used);
  }
  return bytes;
}

uint64_t ReadWeightBytes(const SegmentGraph& segment, const ExpertConfig& experts) {
  std::map<TensorId, const WeightUse*> uses;
  for (const WeightUse& use : segment.weights) uses[use.tensor] = &use;
  // Sums by tensor of the file, so that an embedding that is also the output matrix is counted
  // once.
  std::map<const gguf::TensorInfo*, uint64_t> read;
  const trine_graph view = segment.graph.View();
  for (uint32_t i = 0; i < view.n_ops; ++i) {
    const trine_op& op = view.ops[i];
    for (uint32_t k = 0; k < op.n_in; ++k) {
      const auto use = uses.find(op.in[k]);
      if (use == uses.end()) continue;
      uint64_t& bytes = read[use->second->info];
      bytes = std::max(bytes, BytesRead(*use->second, op.kind, experts));
    }
  }
  uint64_t sum = 0;
  for (const auto& [info, bytes] : read) sum += bytes;
  return sum;
}

}  // namespace

uint64_t DecodeBytes::Kv(int64_t positions) const {
  uint64_t bytes = 0;
  for (const Cache& cache : caches) {
    const int64_t seen = cache.window > 0 ? std::min(positions, cache.window) : positions;
    bytes += cache.bytes_per_position * static_cast<uint64_t>(seen);
  }
  return bytes;
}

double DecodeBytes::MeanKv(int64_t depth, int64_t n_tokens) const {
  double sum = 0;
  for (int64_t i = 0; i < n_tokens; ++i) sum += static_cast<double>(Kv(depth + i + 1));
  return n_tokens > 0 ? sum / static_cast<double>(n_tokens) : 0;
}

absl::StatusOr<DecodeBytes> CountDecodeBytes(const gguf::File& file, const ModelConfig& config,
                                             const SegmentLimits& limits) {
  const auto segment = BuildSegmentGraph(file, config, limits);
  if (!segment.ok()) return segment.status();
  DecodeBytes decode;
  decode.weights = ReadWeightBytes(*segment, config.experts);
  for (const KvUse& use : segment->caches) {
    const trine_tensor& cache = segment->graph.tensor(use.tensor);
    uint64_t head_bytes = 0;
    if (!quant::RowBytes(static_cast<quant::Type>(cache.dtype), cache.dims[0], &head_bytes)) {
      return absl::InvalidArgumentError("a head is no whole number of the cache type's blocks");
    }
    decode.caches.push_back({head_bytes * static_cast<uint64_t>(config.n_kv_heads),
                             config.IsWindowed(use.layer) ? config.window : 0});
  }
  return decode;
}

}  // namespace trine
