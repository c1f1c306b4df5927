// Runs the passes of a capture again, on the devices that the model is placed on, and finds the
// first value that differs. For authors of backends. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/graph/capture_file.h"
#include "runtime/graph/execution_graph.h"

namespace trine {

struct ReplayOptions {
  // true: runs each op as a separate plan, if the graph has taps at every op. false: runs each
  // layer as one plan.
  bool ops = false;
  std::function<void(size_t done, size_t total)> progress;  // called with numbers of passes
};

// The first value that differs. All values before it, in its pass and in earlier ones, were equal,
// so its op or layer had the captured inputs.
struct ReplayDifference {
  size_t pass = 0;
  int64_t position = 0;  // the position of the pass's first token
  CapturedTap tap;
  std::string part;    // "layer 3", "the head"
  std::string device;  // the device that produced the value
  static constexpr uint64_t kUnknown = static_cast<uint64_t>(-1);
  // The first element that differs (kUnknown: the capture has no values), how many elements differ,
  // and how many there are.
  uint64_t element = kUnknown, differing = 0, elements = 0;
  double captured = 0, found = 0;  // the first differing element in both
  uint64_t ulps = 0;               // the distance of these two, for f32, f16 and bf16
};

struct ReplayResult {
  size_t passes = 0;
  uint64_t values = 0;                         // how many values were compared
  uint64_t ops = 0;                            // how many ops were run
  std::optional<ReplayDifference> difference;  // nullopt: all values are equal
};

// Replays a capture. `graph` must be empty, be of the capture's model, and have a tap for every tap
// of the capture. Returns INVALID_ARGUMENT for a capture of another model.
absl::StatusOr<ReplayResult> Replay(const CaptureFile& capture, const ReplayOptions& options,
                                    ExecutionGraph* graph);

// Describes a difference in several lines for people to read.
std::string Describe(const ReplayDifference& difference);

}  // namespace trine
