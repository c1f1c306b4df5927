// Cuts work on many tensors into pieces and runs them on the host's thread team. Each worker gets
// one stretch of every large tensor, so that memory that it writes first is near it. A worker that
// is done takes pieces of the others.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "plugins/host_services.h"
#include "runtime/model/weights/load_progress.h"

namespace trine {

// A tensor as units (rows or groups of rows) that can be worked on independently.
struct TeamRange {
  uint64_t units = 0;
  uint64_t unit_bytes = 0;
};

// Works on units [begin, end) of a range. Several threads call it at once.
using PieceWork = std::function<absl::Status(size_t range, uint64_t begin, uint64_t end)>;

// Runs `work` on all units of all ranges. Returns the error of the first failed piece, in the order
// of ranges and units; later pieces may be left out. Reports each byte to the meter, on the calling
// thread.
absl::Status RunPieces(const std::vector<TeamRange>& ranges, const HostServices& host,
                       const PieceWork& work, LoadMeter* meter);

}  // namespace trine
