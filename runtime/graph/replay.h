// Shows authors of backends where a device gives other bits: runs the passes of a capture again, on
// the devices of the graph's model, and finds the first value that differs from the captured one.
// Not thread-safe.
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
  // true: runs each op as a plan of its own if the graph has taps at every op, otherwise each
  // layer. false: runs each layer as one plan.
  bool ops = false;
  // Called before each pass with the number of passes done and of all; may be empty.
  std::function<void(size_t done, size_t total)> progress;
};

// The first value that differs. All captured values before this one were equal. With a capture of
// ops, the op therefore had the captured inputs. A capture of layers has no KV caches, so a cache
// may have differed before.
struct ReplayDifference {
  size_t pass = 0;       // index in the capture
  int64_t position = 0;  // the position of the pass's first token
  CapturedTap tap;
  std::string part;    // "the embedding", "layer 3", "the head"
  std::string device;  // the device that produced the value
  static constexpr uint64_t kUnknown = static_cast<uint64_t>(-1);
  uint64_t element = kUnknown;  // the first element that differs; kUnknown: only hashes are known
  uint64_t differing = 0;       // how many elements differ
  uint64_t elements = 0;        // how many elements there are; of a block type, bytes
  double captured = 0, found = 0;  // the first differing element, as captured and as replayed
  uint64_t ulps = 0;  // the units in the last place between the two, for f32, f16 and bf16
};

struct ReplayResult {
  size_t passes = 0;                           // passes run, with the one that differs
  uint64_t values = 0;                         // how many values were compared
  uint64_t ops = 0;                            // how many ops were run
  std::optional<ReplayDifference> difference;  // nullopt: all values are equal
};

// Replays a capture and stops at the first difference, which is no error. REQUIRES: `graph` is
// empty and of the capture's model; the caller compares the models' ids. Returns INVALID_ARGUMENT
// if the graph lacks a tap of the capture, or if the positions of the passes have a gap.
absl::StatusOr<ReplayResult> Replay(const CaptureFile& capture, const ReplayOptions& options,
                                    ExecutionGraph* graph);

// Describes a difference in several lines for people to read.
std::string Describe(const ReplayDifference& difference);

}  // namespace trine
