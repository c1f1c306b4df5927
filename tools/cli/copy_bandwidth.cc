#include "tools/cli/copy_bandwidth.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "dispatch/segment.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCopies = 8;  // in a run: starting it then counts for little
constexpr int kRuns = 6;

}  // namespace

absl::StatusOr<ReadBandwidth> MeasureCopyBandwidth(std::shared_ptr<Device> device, uint64_t bytes) {
  constexpr uint64_t kRow = 4096;  // bytes
  const auto rows = static_cast<int64_t>(std::max<uint64_t>(bytes / kRow, 1));
  const uint64_t copied = static_cast<uint64_t>(rows) * kRow;
  auto memory = Buffer::Allocate(device, 2 * copied, TRINE_MEMORY_STATE);
  if (!memory.ok()) return memory.status();
  OpGraph graph;
  const Shape shape = {kRow / 4, rows};
  const TensorId a = graph.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F32, shape);
  const TensorId b = graph.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F32, shape);
  for (int i = 0; i < kCopies; i += 2) {
    graph.AddOp(TRINE_OP_COPY, {a}, {b});
    graph.AddOp(TRINE_OP_COPY, {b}, {a});
  }
  graph.Finish();
  const std::vector<SlotMemory> places = {{graph.SlotOf(a), memory->Span(0, copied)},
                                          {graph.SlotOf(b), memory->Span(copied, copied)}};
  auto segment = Segment::Create(std::move(device), std::move(graph), TRINE_NUMERICS_EXACT, places);
  if (!segment.ok()) return segment.status();
  double best = 0;
  for (int i = 0; i < kRuns; ++i) {
    const Clock::time_point begin = Clock::now();
    if (absl::Status s = (*segment)->Run({}); !s.ok()) return s;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, 2.0 * kCopies * static_cast<double>(copied) / seconds);
  }
  return ReadBandwidth{best, copied};
}

}  // namespace trine
