// Copies from one device of a backend to another. A pair of devices that says it can copy directly
// is tried first: bytes that went that way are read back through the host and compared. Some pairs
// bring wrong bytes and no error; these, and those without access, go through the host.
#ifndef TRINE_BACKENDS_HIP_PEERS_H_
#define TRINE_BACKENDS_HIP_PEERS_H_

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

// Another device's failure, as one that is not lost has to tell it: ABORTED in place of
// UNAVAILABLE.
absl::Status NotOurs(const absl::Status& status);

// All calls from any thread.
class PeerLinks {
 public:
  // `tell` is given a sentence about each pair, once, and whether it goes through the host.
  using Tell = std::function<void(const std::string& sentence, bool through_host)>;
  explicit PeerLinks(Tell tell) : tell_(std::move(tell)) {}

  // Waits until the bytes are there. UNAVAILABLE when `target` is lost; ABORTED when `source` is,
  // which is no fault of the target's.
  absl::Status Copy(GpuDevice& target, std::byte* to, GpuDevice& source, const std::byte* from,
                    uint64_t bytes);

 private:
  bool IsDirect(GpuDevice& target, GpuDevice& source);

  const Tell tell_;
  std::mutex mutex_;
  std::map<std::pair<int, int>, bool> direct_;  // by source and target, once they were tried
  std::set<std::pair<int, int>> untried_;  // those that could not be, and of which that was told
};

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_PEERS_H_
