#include "runtime/model/arch/graph_taps.h"

#include "trine/backend_sdk.h"

namespace trine {
namespace {

Tap TapOf(const OpGraph& graph, size_t op, uint32_t output) {
  const TensorId tensor = graph.op(op).out[output];
  return {op, output, tensor, graph.op(op).kind == TRINE_OP_KV_STORE};
}

// Returns the number of ops without the copy to the border, which the whole model does not have.
size_t OwnOps(const SegmentGraph& segment) {
  const size_t n = segment.graph.n_ops();
  return segment.io.hidden_out == TRINE_NONE ? n : n - 1;
}

}  // namespace

std::vector<Tap> FindTaps(const SegmentGraph& segment, TapLevel level) {
  const OpGraph& graph = segment.graph;
  const size_t n_ops = OwnOps(segment);
  std::vector<Tap> taps;
  if (level == TapLevel::kLayers) {
    for (const LayerEnd& end : segment.ends) {
      size_t op = end.op;  // the op that computes the hidden state is the layer's last, or nearly
      while (graph.op(op - 1).out[0] != end.hidden) --op;
      taps.push_back(TapOf(graph, op - 1, 0));
    }
    if (segment.io.hidden_out == TRINE_NONE) taps.push_back(TapOf(graph, n_ops - 1, 0));
  } else if (level == TapLevel::kOps) {
    for (size_t op = 0; op < n_ops; ++op) {
      for (uint32_t i = 0; i < graph.op(op).n_out; ++i) taps.push_back(TapOf(graph, op, i));
    }
  }
  return taps;
}

void ExposeTaps(const std::vector<Tap>& taps, SegmentGraph* segment) {
  OpGraph& graph = segment->graph;
  for (const Tap& tap : taps) {
    if (graph.slots()[graph.SlotOf(tap.tensor)].role == TRINE_ROLE_TEMP) graph.Expose(tap.tensor);
  }
}

uint64_t BytesAt(const trine_tensor& tensor, std::span<const int64_t> params) {
  const auto dim = [&](uint32_t i) {
    const int64_t d = tensor.dims[i];
    return d >= 0 ? d : params[static_cast<size_t>(-d - 1)];
  };
  int64_t bytes = sdk::ValueBytes(tensor.dtype, dim(0));
  for (uint32_t i = 1; i < tensor.rank; ++i) bytes *= dim(i);
  return static_cast<uint64_t>(bytes);
}

CacheRows::CacheRows(const trine_tensor& cache)
    : row_bytes(static_cast<uint64_t>(sdk::ValueBytes(cache.dtype, cache.dims[0]))),
      heads(cache.dims[2]) {}

uint64_t CacheRows::OffsetOf(int32_t slot, int64_t head) const {
  const int64_t block = slot / kBlockPositions, position = slot % kBlockPositions;
  const int64_t row = (block * heads + head) * kBlockPositions + position;
  return static_cast<uint64_t>(row) * row_bytes;
}

}  // namespace trine
