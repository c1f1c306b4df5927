#include "runtime/model/tensor_places.h"

#include <algorithm>
#include <numeric>

#include "runtime/model/piece_graph.h"

namespace trine {
namespace {

// Fewer than this are not worth a second device's while: a router's logits, a gate.
constexpr int64_t kLeastRows = 32;

// The weight that an op is about; null where it has none.
const gguf::TensorInfo* WeightOf(const SegmentGraph& segment, size_t index) {
  const trine_op& op = segment.graph.op(index);
  if (op.kind != TRINE_OP_MATMUL && op.kind != TRINE_OP_MOE_MATMUL &&
      op.kind != TRINE_OP_GATHER_ROWS) {
    return nullptr;
  }
  for (const WeightUse& use : segment.weights) {
    if (use.tensor == op.in[0]) return use.info;
  }
  return nullptr;
}

// A router: what it gives is used to choose, on the segment's own device, before anything else can
// be done.
bool IsRouter(const SegmentGraph& segment, size_t index) {
  const OpGraph& g = segment.graph;
  for (const uint32_t reader : g.Readers(g.op(index).out[0])) {
    if (g.op(reader).kind == TRINE_OP_MOE_ROUTE) return true;
  }
  return false;
}

size_t NumberOf(const NamedDevice& device, std::vector<NamedDevice>* devices) {
  const auto found = std::find_if(devices->begin(), devices->end(),
                                  [&](const NamedDevice& d) { return d.device == device.device; });
  if (found != devices->end()) return static_cast<size_t>(found - devices->begin());
  devices->push_back(device);
  return devices->size() - 1;
}

}  // namespace

std::vector<RowShare> CutRows(int64_t n, const std::vector<double>& shares) {
  constexpr int64_t kManyRows = 1024;
  const int64_t unit = n >= kManyRows ? 32 : 8;
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<RowShare> cut;
  double sum = 0;
  int64_t begin = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    sum += shares[i];
    const double at = sum / total * static_cast<double>(n) / static_cast<double>(unit);
    int64_t end = std::min(static_cast<int64_t>(at + 0.5) * unit, n);
    if (i + 1 == shares.size()) end = n;
    if (end > begin) cut.push_back({i, begin, end});
    begin = std::max(begin, end);
  }
  return cut;
}

SegmentOwners FindOwners(const SegmentPlace& place, const SegmentGraph& segment,
                         const TensorPlaces& places) {
  SegmentOwners owners;
  owners.devices.push_back({place.device, place.device_name});
  owners.ops.resize(segment.graph.n_ops());
  if (places.empty()) return owners;
  std::vector<double> shares;
  for (const DeviceRows& rows : places.rows) shares.push_back(rows.share);
  for (size_t op = 0; op < owners.ops.size(); ++op) {
    const gguf::TensorInfo* weight = WeightOf(segment, op);
    if (weight == nullptr) continue;
    const auto named = places.tensors.find(std::string(weight->name));
    if (named != places.tensors.end()) {
      owners.ops[op] = {{NumberOf(named->second, &owners.devices), 0, 0}};
      continue;
    }
    if (shares.empty() || !HasRows(segment, op) || IsRouter(segment, op)) continue;
    const int64_t n = segment.graph.tensor(segment.graph.op(op).in[0]).dims[1];
    if (n < kLeastRows) continue;
    for (RowShare share : CutRows(n, shares)) {
      share.device = NumberOf(places.rows[share.device].device, &owners.devices);
      owners.ops[op].push_back(share);
    }
  }
  return owners;
}

}  // namespace trine
