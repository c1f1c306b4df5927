#include "backends/hip/peers.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace trine::hip {
namespace {

using Bytes = std::vector<std::byte>;

// The bytes of a trial: more than any single transaction moves, and not a round number.
constexpr uint64_t kTestBytes = (4 << 20) + 68;
constexpr uint32_t kRounds = 2;

constexpr uint64_t kPieceBytes = 8 << 20;

Bytes Pattern(uint32_t seed) {
  Bytes bytes(kTestBytes);
  for (std::byte& b : bytes) {
    seed = seed * 1664525u + 1013904223u;
    b = static_cast<std::byte>(seed >> 24);
  }
  return bytes;
}

gpuError StartDirect(GpuDevice& target, std::byte* to, const GpuDevice& source,
                     const std::byte* from, uint64_t bytes) {
  return gpuMemcpyPeerAsync(to, target.index(), from, source.index(), bytes, target.stream());
}

absl::Status SynchronizeAlone(GpuDevice& device) {
  const InUse in_use(device);
  return device.Synchronize();
}

// Finds out which of the two devices is lost by synchronizing each.
absl::Status AfterFailure(GpuDevice& target, GpuDevice& source, gpuError error) {
  const absl::Status ours = SynchronizeAlone(target);
  if (!ours.ok()) return ours;
  const absl::Status theirs = SynchronizeAlone(source);
  if (!theirs.ok()) return NotOurs(theirs);
  const InUse in_use(target);
  return target.Check(error, "a copy between devices failed");
}

absl::Status CopyDirectly(GpuDevice& target, std::byte* to, GpuDevice& source,
                          const std::byte* from, uint64_t bytes) {
  gpuError error;
  {
    const InUse in_use(target);
    error = StartDirect(target, to, source, from, bytes);
    if (error == gpuSuccess) return target.Synchronize();
  }
  return AfterFailure(target, source, error);
}

absl::Status CopyThroughHost(GpuDevice& target, std::byte* to, GpuDevice& source,
                             const std::byte* from, uint64_t bytes) {
  Bytes piece(std::min(bytes, kPieceBytes));
  for (uint64_t done = 0; done < bytes; done += piece.size()) {
    const uint64_t part = std::min<uint64_t>(bytes - done, piece.size());
    absl::Status status = NotOurs(source.Read(piece.data(), from + done, part));
    if (status.ok()) status = target.Write(to + done, piece.data(), part);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Returns "" or why the pair has no access to each other's memory.
std::string WhyNoAccess(GpuDevice& target, GpuDevice& source) {
  int can = 0;
  gpuError error = gpuDeviceCanAccessPeer(&can, target.index(), source.index());
  if (error == gpuSuccess && can == 0) return "one has no access to the other's memory";
  for (const auto& [from, to] : {std::pair(&target, &source), std::pair(&source, &target)}) {
    const InUse in_use(*from);
    if (error == gpuSuccess) error = gpuEnablePeerAccess(to->index());
    if (error != gpuSuccess) (void)gpuGetLastError();
  }
  if (error == gpuSuccess) return "";
  return absl::StrCat("access was refused: ", gpuGetErrorString(error));
}

// Tries direct copies. Returns "" if they work, else what is wrong with them. Fails if that could
// not be found out.
absl::StatusOr<std::string> TryPair(GpuDevice& target, GpuDevice& source) {
  if (std::string why = WhyNoAccess(target, source); !why.empty()) return why;
  auto from = source.Allocate(kTestBytes, /*of_host=*/false);
  if (!from.ok()) return from.status();
  auto to = target.Allocate(kTestBytes, /*of_host=*/false);
  if (!to.ok()) return to.status();
  for (uint32_t round = 0; round < kRounds; ++round) {
    const Bytes sent = Pattern(2 * round + 1), before = Pattern(2 * round + 2);
    absl::Status status = source.Write(from->data(), sent.data(), kTestBytes);
    if (status.ok()) status = target.Write(to->data(), before.data(), kTestBytes);
    if (!status.ok()) return status;
    {
      const InUse in_use(target);
      const gpuError error = StartDirect(target, to->data(), source, from->data(), kTestBytes);
      if (error != gpuSuccess) {
        (void)gpuGetLastError();
        return absl::StrCat("it fails: ", gpuGetErrorString(error));
      }
      status = target.Synchronize();
    }
    Bytes arrived(kTestBytes);
    if (status.ok()) status = target.Read(arrived.data(), to->data(), kTestBytes);
    if (!status.ok()) return status;
    const auto wrong = std::mismatch(sent.begin(), sent.end(), arrived.begin()).first;
    if (wrong != sent.end()) {
      return absl::StrCat("byte ", wrong - sent.begin(), " of ", kTestBytes, " came out wrong");
    }
  }
  return "";
}

}  // namespace

absl::Status NotOurs(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return status;
  return absl::AbortedError(absl::StrCat("the other device is lost: ", status.message()));
}

bool PeerLinks::IsDirect(GpuDevice& target, GpuDevice& source) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto key = std::pair(source.index(), target.index());
  const auto found = direct_.find(key);
  if (found != direct_.end()) return found->second;
  const auto why = TryPair(target, source);
  const std::string pair =
      absl::StrCat("copies from device ", source.index(), " to device ", target.index(), " go ");
  if (!why.ok()) {  // tried again at the next copy, but reported once
    if (untried_.insert(key).second) {
      tell_(
          absl::StrCat(pair, "through the host: they could not be tried: ", why.status().message()),
          true);
    }
    return false;
  }
  tell_(why->empty() ? absl::StrCat(pair, "directly")
                     : absl::StrCat(pair, "through the host: ", *why),
        !why->empty());
  return direct_[key] = why->empty();
}

absl::Status PeerLinks::Copy(GpuDevice& target, std::byte* to, GpuDevice& source,
                             const std::byte* from, uint64_t bytes) {
  if (target.index() == source.index()) return target.Copy(to, from, bytes);
  if (absl::Status status = NotOurs(source.Health()); !status.ok()) return status;
  if (IsDirect(target, source)) return CopyDirectly(target, to, source, from, bytes);
  if (absl::Status status = target.Health(); !status.ok()) return status;
  return CopyThroughHost(target, to, source, from, bytes);
}

}  // namespace trine::hip
