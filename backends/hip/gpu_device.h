// An open device: its stream, its memory, bytes to and from it. Remembers that it is lost.
#ifndef TRINE_BACKENDS_HIP_GPU_DEVICE_H_
#define TRINE_BACKENDS_HIP_GPU_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/hip/gpu_status.h"
#include "kernels/hip/gpu/runtime.h"

namespace trine::hip {

// All calls of a runtime go to the thread's current device: calls are made with one of these alive.
// One thread at a time uses a device.
class GpuDevice;
class [[nodiscard]] InUse {
 public:
  explicit InUse(GpuDevice& device);

 private:
  std::lock_guard<std::mutex> lock_;
};

enum class MemoryKind {
  kDevice,
  kPinned,      // the host's, made by the runtime: kernels read and write it, too
  kRegistered,  // the same of memory that somebody else keeps
  kPageable     // somebody else's, for copies alone
};

// Memory of a device's, or of the host's. Given back when it goes, also by a device that is lost.
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

class GpuDevice {
 public:
  // UNAVAILABLE or RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<GpuDevice>> Open(int index);
  ~GpuDevice();

  int index() const { return index_; }
  gpuStream stream() const { return stream_; }

  // OK, or why it is lost. Any thread.
  absl::Status Health() const;

  // The status of a call, which is remembered when it means that the device is lost.
  absl::Status Check(gpuError error, absl::string_view what);

  absl::StatusOr<GpuMemory> Allocate(uint64_t bytes, bool of_host);
  // Memory that somebody keeps until this is gone. What may be written is pinned where it is, or
  // refused with UNIMPLEMENTED or RESOURCE_EXHAUSTED; pages of a file (`read_only`) are left alone.
  absl::StatusOr<GpuMemory> Import(void* data, uint64_t bytes, bool read_only);

  // All wait until the bytes are there. Memory of the host's may be any.
  absl::Status Write(std::byte* to, const void* from, uint64_t bytes);
  absl::Status Read(void* to, const std::byte* from, uint64_t bytes);
  absl::Status Copy(std::byte* to, const std::byte* from, uint64_t bytes);
  // To or from memory of the host's that is pinned: straight.
  absl::Status CopyPinned(std::byte* to, const std::byte* from, uint64_t bytes, gpuMemcpyKind kind);

  // Within InUse: until all that was submitted is done.
  absl::Status Synchronize();
  // Within InUse: puts a copy from memory that is not pinned on a stream, through pinned pieces. It
  // has been read when this returns, and is there when the stream has come so far.
  absl::Status StartWrite(std::byte* to, const void* from, uint64_t bytes, gpuStream stream);

 private:
  friend class InUse;

  // Two pieces of pinned memory: the host fills one while the device empties the other.
  struct Stage {
    std::byte* memory = nullptr;
    gpuEvent done = nullptr;
    bool busy = false;
  };

  explicit GpuDevice(int index) : index_(index) {}
  absl::Status Prepare();
  absl::Status WaitFor(Stage* stage);

  const int index_;
  gpuStream stream_ = nullptr;
  Stage stages_[2];
  size_t turn_ = 0;   // whose turn it is to be filled
  std::mutex mutex_;  // of the stream and the stages

  mutable std::mutex health_mutex_;
  absl::Status lost_;
};

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_GPU_DEVICE_H_
