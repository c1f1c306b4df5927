// Copies from one device of a backend to another. Some pairs of devices deliver wrong bytes and no
// error, so a pair that claims to copy directly is tried first: bytes that went that way are read
// back through the host and compared. Pairs that fail this, and pairs without access, copy through
// the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "backends/hip/gpu_device.h"

namespace trine::hip {

// Converts the failure of another device. A device that is not lost must report ABORTED instead of
// UNAVAILABLE.
absl::Status NotOurs(const absl::Status& status);

// Knows which pairs copy directly. Any thread may call it.
class PeerLinks {
 public:
  // Receives, once for each pair, a sentence and whether the pair copies through the host.
  using Tell = std::function<void(const std::string& sentence, bool through_host)>;
  explicit PeerLinks(Tell tell) : tell_(std::move(tell)) {}

  // Copies and waits until the bytes are there. Returns UNAVAILABLE if `target` is lost, ABORTED if
  // `source` is lost, because that is no fault of the target.
  absl::Status Copy(GpuDevice& target, std::byte* to, GpuDevice& source, const std::byte* from,
                    uint64_t bytes);

 private:
  bool IsDirect(GpuDevice& target, GpuDevice& source);

  const Tell tell_;
  std::mutex mutex_;
  std::map<std::pair<int, int>, bool> direct_;  // pairs (source, target) that were tried
  std::set<std::pair<int, int>> untried_;       // pairs that were reported because the trial failed
};

}  // namespace trine::hip
