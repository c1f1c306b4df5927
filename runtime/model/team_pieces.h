// Work over many tensors, cut into pieces for the host's thread team. Each worker gets one stretch
// of every large tensor, so that memory it writes first lies near it, and helps the others when it
// is through.
#ifndef TRINE_RUNTIME_MODEL_TEAM_PIECES_H_
#define TRINE_RUNTIME_MODEL_TEAM_PIECES_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "plugins/host_services.h"
#include "runtime/model/load_progress.h"

namespace trine {

// A tensor as rows, or groups of rows, that can be worked on apart from each other.
struct TeamRange {
  uint64_t units = 0;
  uint64_t unit_bytes = 0;
};

// Units [begin, end) of a range. Called by several threads at once.
using PieceWork = std::function<absl::Status(size_t range, uint64_t begin, uint64_t end)>;

// The status of the first piece that failed, by range and unit; pieces far behind it are not begun.
// Tells the meter of each byte, on the calling thread.
absl::Status RunPieces(const std::vector<TeamRange>& ranges, const HostServices& host,
                       const PieceWork& work, LoadMeter* meter);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_TEAM_PIECES_H_
