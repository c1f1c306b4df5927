// An open device: its stream, its memory, and copies to and from it. Remembers if it was lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/hip/gpu/runtime.h"

namespace trine::hip {

// Returns OK, RESOURCE_EXHAUSTED if memory ran out, and UNAVAILABLE for all other errors. An error
// of submitted work may show in any later call, so other errors can't be told from a lost device.
// `what` names the call in the message.
absl::Status GpuStatus(gpuError error, absl::string_view what);

// Pieces of the host's memory: `count` pieces of `bytes` each, which begin `pitch` bytes apart.
struct HostPieces {
  const std::byte* from = nullptr;
  uint64_t bytes = 0;
  uint64_t count = 1;
  uint64_t pitch = 0;  // of no meaning for a single piece

  uint64_t AllBytes() const { return bytes * count; }
  const std::byte* At(uint64_t piece) const { return from + piece * pitch; }
};

// Copies pieces one behind the other within the host's memory.
using HostCopy = std::function<void(void* to, const HostPieces& from)>;

// Copies bytes [begin, end) of the pieces, as they lie one behind the other.
void CopyPieces(std::byte* to, const HostPieces& from, uint64_t begin, uint64_t end);

// Makes a device the calling thread's current device, to which all calls of a runtime go, and keeps
// other threads from using it. Make calls of the runtime only while such an object is alive.
class GpuDevice;
class [[nodiscard]] InUse {
 public:
  explicit InUse(GpuDevice& device);

 private:
  std::lock_guard<std::mutex> lock_;
};

enum class MemoryKind {
  kDevice,
  kPinned,      // host memory that the runtime allocated: kernels can read and write it
  kRegistered,  // the caller's memory, pinned: kernels can read and write it
  kPinnedFile,  // the same, of memory that is only read
  kPageable     // the caller's memory, for copies only
};

// Owns memory of a device or of the host. Gives it back when destroyed, even if the device is lost.
class GpuMemory {
 public:
  GpuMemory() = default;
  GpuMemory(GpuDevice* device, std::byte* data, uint64_t bytes, MemoryKind kind)
      : device_(device), data_(data), bytes_(bytes), kind_(kind) {}
  GpuMemory(GpuMemory&& other) noexcept { *this = std::move(other); }
  GpuMemory& operator=(GpuMemory&& other) noexcept;
  ~GpuMemory();

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  MemoryKind kind() const { return kind_; }
  bool of_host() const { return kind_ != MemoryKind::kDevice; }

 private:
  GpuDevice* device_ = nullptr;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
  MemoryKind kind_ = MemoryKind::kDevice;
};

// An open device. Calls marked "within InUse" need an InUse of this device; calls that allocate or
// copy take one themselves.
class GpuDevice {
 public:
  // Returns UNAVAILABLE or RESOURCE_EXHAUSTED if the device can't be opened.
  static absl::StatusOr<std::unique_ptr<GpuDevice>> Open(int index, GpuWait wait = GpuWait::kYield);
  ~GpuDevice();

  int index() const { return index_; }
  gpuStream stream() const { return stream_; }

  // Returns OK, or why the device is lost. Any thread may call.
  absl::Status Health() const;

  // Converts the result of a call to a status. Remembers it if it means that the device is lost.
  absl::Status Check(gpuError error, absl::string_view what);

  absl::StatusOr<GpuMemory> Allocate(uint64_t bytes, bool of_host);
  // Imports memory, which the caller keeps until the result is destroyed. Pins writable memory, or
  // returns UNIMPLEMENTED or RESOURCE_EXHAUSTED. Pins memory that is only read, such as the pages
  // of a file, if the platform can and the machine has enough memory. Otherwise sets `not_pinned`
  // to the reason.
  absl::StatusOr<GpuMemory> Import(void* data, uint64_t bytes);
  GpuMemory ImportReadOnly(void* data, uint64_t bytes, std::string* not_pinned);

  // Copy, and wait until the bytes are there. Host memory need not be pinned.
  absl::Status Write(std::byte* to, const void* from, uint64_t bytes);
  absl::Status Read(void* to, const std::byte* from, uint64_t bytes);
  absl::Status Copy(std::byte* to, const std::byte* from, uint64_t bytes);
  // Copies to or from pinned host memory, without a stage in between.
  absl::Status CopyPinned(std::byte* to, const std::byte* from, uint64_t bytes, gpuMemcpyKind kind);

  // Within InUse: waits until all submitted work is done.
  absl::Status Synchronize();
  // Within InUse: puts a copy from memory that is not pinned on a stream, through pinned stages.
  // The source has been read when this returns; the bytes arrive in the stream's order. `copy`
  // copies within the host's memory; null: this thread does.
  absl::Status StartWrite(std::byte* to, const HostPieces& from, gpuStream stream,
                          const HostCopy& copy = nullptr);

 private:
  friend class InUse;

  // A piece of pinned memory. The host fills one of the two stages while the device empties the
  // other.
  struct Stage {
    std::byte* memory = nullptr;
    gpuEvent done = nullptr;
    bool busy = false;
  };

  explicit GpuDevice(int index) : index_(index) {}
  absl::Status Prepare();
  absl::Status WaitFor(Stage* stage);
  // Fills a stage with some pieces and puts its copy on a stream.
  absl::Status StartPart(std::byte* to, const HostPieces& from, gpuStream stream,
                         const HostCopy& copy);

  const int index_;
  gpuStream stream_ = nullptr;
  Stage stages_[2];
  size_t turn_ = 0;   // modulo 2: the stage to fill next
  std::mutex mutex_;  // guards the stream and the stages

  mutable std::mutex health_mutex_;
  absl::Status lost_;
};

}  // namespace trine::hip
