// Runs a capture again, on whatever devices the model is now, and looks for the first value that is
// another: what the author of a backend wants to know. Not thread-safe.
#ifndef TRINE_RUNTIME_GRAPH_REPLAY_H_
#define TRINE_RUNTIME_GRAPH_REPLAY_H_

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
  bool ops = false;  // each op as a plan of its own, where the graph has taps at every op; else
                     // whole layers, as they are run together
  std::function<void(size_t done, size_t total)> progress;  // passes
};

// Where a value was another. All before it, in the pass and in the passes before, were the same, so
// that its op, or its layer, had the captured inputs.
struct ReplayDifference {
  size_t pass = 0;
  int64_t position = 0;  // of the pass's first token
  CapturedTap tap;
  std::string part;    // "layer 3", "the head"
  std::string device;  // that gave it
  // Where the capture has values, the first one that differs; else kUnknown.
  static constexpr uint64_t kUnknown = static_cast<uint64_t>(-1);
  uint64_t element = kUnknown, differing = 0, elements = 0;
  double captured = 0, found = 0;
  uint64_t ulps = 0;  // between the two, of f32, f16 and bf16
};

struct ReplayResult {
  size_t passes = 0;
  uint64_t values = 0;  // compared
  uint64_t ops = 0;     // run
  std::optional<ReplayDifference> difference;
};

// The graph is empty, of the capture's model, and with taps at least as fine as the capture's.
// INVALID_ARGUMENT for a capture of another model.
absl::StatusOr<ReplayResult> Replay(const CaptureFile& capture, const ReplayOptions& options,
                                    ExecutionGraph* graph);

// Several lines for a person.
std::string Describe(const ReplayDifference& difference);

}  // namespace trine

#endif  // TRINE_RUNTIME_GRAPH_REPLAY_H_
