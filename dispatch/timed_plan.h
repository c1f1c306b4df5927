// A small plan on a device, run again and again to see how long it takes. Its weights hold numbers
// that every block format takes for ordinary ones.
#ifndef TRINE_DISPATCH_TIMED_PLAN_H_
#define TRINE_DISPATCH_TIMED_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/op_graph.h"
#include "dispatch/segment.h"
#include "plugins/handles.h"

namespace trine {

// How a plan has its weights.
enum class TimedWeights {
  kPacked,    // in the device's own layout, where it has one
  kPlain,     // as a file has them
  kStreamed,  // the same, in the host's memory
};

class TimedPlan {
 public:
  // `weights` are the graph's constants, each the only tensor of its slot: each gets memory of its
  // own. State is zeros. UNIMPLEMENTED where the device can't stream.
  static absl::StatusOr<std::unique_ptr<TimedPlan>> Create(
      std::shared_ptr<Device> device, OpGraph graph, const std::vector<TensorId>& weights,
      TimedWeights how = TimedWeights::kPacked);

  Segment& segment() { return *segment_; }
  // In nanoseconds, of several runs the one that a quarter of them are faster than: what others do
  // on the machine counts for little. As many as `seconds` has room for, within bounds; a first one
  // does not count.
  absl::StatusOr<double> Time(const std::vector<int64_t>& params, double seconds);

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  using HostMemory = std::unique_ptr<void, Free>;

  TimedPlan() = default;
  absl::StatusOr<Buffer> Import(const std::shared_ptr<Device>& device,
                                const std::vector<std::byte>& image);

  std::vector<HostMemory> host_;  // outlives what stands on it
  std::vector<Buffer> memory_;    // outlives the segment
  std::unique_ptr<Segment> segment_;
};

}  // namespace trine

#endif  // TRINE_DISPATCH_TIMED_PLAN_H_
