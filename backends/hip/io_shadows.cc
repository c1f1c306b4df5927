#include "backends/hip/io_shadows.h"

#include <algorithm>
#include <map>

#include "backends/hip/op_launches.h"

namespace trine::hip {
namespace {

// Returns whether the op writes all bytes between the tensor's first and its last.
bool IsWhole(const sdk::Op& op, const trine_tensor& t, const std::vector<int64_t>& params) {
  if (op.kind == TRINE_OP_KV_STORE) return false;
  const sdk::Dims dims = sdk::ResolveDims(t, params.data());
  const sdk::ByteRange range = sdk::RangeOf(t, params);
  const int64_t bytes = sdk::ValueBytes(t.dtype, dims[0]) * dims[1] * dims[2] * dims[3];
  return range.end - range.begin == static_cast<uint64_t>(bytes);
}

void Widen(const sdk::ByteRange& by, std::map<uint32_t, sdk::ByteRange>* ranges) {
  if (by.begin == by.end) return;
  const auto [found, added] = ranges->emplace(by.slot, by);
  if (added) return;
  found->second.begin = std::min(found->second.begin, by.begin);
  found->second.end = std::max(found->second.end, by.end);
}

}  // namespace

IoShadows::IoShadows(const sdk::Graph& graph) : graph_(graph) {
  for (const trine_slot& slot : graph.slots) {
    if (slot.role != TRINE_ROLE_IO) {
      offsets_.emplace_back();
      continue;
    }
    offsets_.emplace_back(bytes_);
    bytes_ += (slot.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
}

IoShadows::Transfers IoShadows::At(const std::vector<int64_t>& params) const {
  const std::vector<int64_t> max = graph_.MaxParams();
  std::map<uint32_t, sdk::ByteRange> in;
  std::vector<sdk::ByteRange> out;
  std::vector<uint32_t> written;
  for (const sdk::Op& op : graph_.ops) {
    for (size_t i = 0; i < op.in.size(); ++i) {
      if (!op.HasInput(i)) continue;
      const trine_tensor& t = graph_.tensors[op.in[i]];
      const bool ours = std::any_of(written.begin(), written.end(), [&](uint32_t w) {
        return sdk::Covers(graph_.tensors[w], t, max);
      });
      if (OffsetOf(t.slot).has_value() && !ours) Widen(sdk::RangeOf(t, params), &in);
    }
    for (const uint32_t tensor : op.out) {
      const trine_tensor& t = graph_.tensors[tensor];
      const sdk::ByteRange range = sdk::RangeOf(t, params);
      if (!OffsetOf(t.slot).has_value() || range.begin == range.end) continue;
      // Bytes between the rows are copied out along with them, so they must be copied in first.
      if (IsWhole(op, t, params)) {
        written.push_back(tensor);
      } else {
        Widen(range, &in);
      }
      out.push_back(range);
    }
  }
  Transfers transfers;
  for (const auto& [slot, range] : in) transfers.in.push_back(range);
  transfers.out = std::move(out);
  return transfers;
}

}  // namespace trine::hip
