#include "backends/hip/gpu_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace trine::hip {
namespace {

// Large enough that a copy's start does not count, small enough to keep two of them pinned.
constexpr uint64_t kStageBytes = 8 << 20;

constexpr uint64_t kMostBytes = uint64_t{1} << 48;

}  // namespace

InUse::InUse(GpuDevice& device) : lock_(device.mutex_) { (void)gpuSetDevice(device.index_); }

GpuMemory& GpuMemory::operator=(GpuMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(of_host_, other.of_host_);
  return *this;
}

GpuMemory::~GpuMemory() {
  if (data_ == nullptr) return;
  const InUse in_use(*device_);
  (void)(of_host_ ? gpuHostFree(data_) : gpuFree(data_));
}

absl::StatusOr<std::unique_ptr<GpuDevice>> GpuDevice::Open(int index) {
  std::unique_ptr<GpuDevice> device(new GpuDevice(index));
  const InUse in_use(*device);
  if (absl::Status status = device->Prepare(); !status.ok()) return status;
  return device;
}

absl::Status GpuDevice::Prepare() {
  absl::Status status = Check(gpuStreamCreate(&stream_), "a stream could not be made");
  for (Stage& stage : stages_) {
    if (!status.ok()) return status;
    void* memory = nullptr;
    status = Check(gpuHostMalloc(&memory, kStageBytes), "no pinned memory for copies");
    stage.memory = static_cast<std::byte*>(memory);
    if (status.ok())
      status = Check(gpuEventCreateUntimed(&stage.done), "an event could not be made");
  }
  return status;
}

GpuDevice::~GpuDevice() {
  const InUse in_use(*this);
  if (stream_ != nullptr) (void)gpuStreamSynchronize(stream_);
  for (Stage& stage : stages_) {
    if (stage.done != nullptr) (void)gpuEventDestroy(stage.done);
    if (stage.memory != nullptr) (void)gpuHostFree(stage.memory);
  }
  if (stream_ != nullptr) (void)gpuStreamDestroy(stream_);
}

absl::Status GpuDevice::Health() const {
  const std::lock_guard<std::mutex> lock(health_mutex_);
  return lost_;
}

absl::Status GpuDevice::Check(gpuError error, absl::string_view what) {
  absl::Status status = GpuStatus(error, what);
  if (absl::IsUnavailable(status)) {
    const std::lock_guard<std::mutex> lock(health_mutex_);
    if (lost_.ok()) lost_ = status;
  }
  return status;
}

absl::StatusOr<GpuMemory> GpuDevice::Allocate(uint64_t bytes, bool of_host) {
  const InUse in_use(*this);
  void* data = nullptr;
  // Kernels read whole words, also where a tensor ends within one.
  if (bytes > kMostBytes) return absl::ResourceExhaustedError("no device has so much memory");
  const uint64_t whole = (bytes + 15) / 16 * 16;
  const absl::Status status = Check(of_host ? gpuHostMalloc(&data, whole) : gpuMalloc(&data, whole),
                                    "memory could not be allocated");
  if (!status.ok()) return status;
  return GpuMemory(this, static_cast<std::byte*>(data), bytes, of_host);
}

absl::Status GpuDevice::WaitFor(Stage* stage) {
  if (!stage->busy) return absl::OkStatus();
  stage->busy = false;
  return Check(gpuEventSynchronize(stage->done), "a copy failed");
}

absl::Status GpuDevice::Write(std::byte* to, const void* from, uint64_t bytes) {
  const InUse in_use(*this);
  const auto* source = static_cast<const std::byte*>(from);
  absl::Status status;
  for (uint64_t done = 0, turn = 0; done < bytes && status.ok(); ++turn) {
    Stage& stage = stages_[turn % 2];
    const uint64_t part = std::min(bytes - done, kStageBytes);
    status = WaitFor(&stage);
    if (!status.ok()) break;
    std::memcpy(stage.memory, source + done, part);
    status = Check(gpuMemcpyAsync(to + done, stage.memory, part, gpuMemcpyHostToDevice, stream_),
                   "a copy to the device failed");
    if (status.ok()) status = Check(gpuEventRecord(stage.done, stream_), "a copy failed");
    stage.busy = status.ok();
    done += part;
  }
  for (Stage& stage : stages_) status.Update(WaitFor(&stage));
  return status;
}

absl::Status GpuDevice::Read(void* to, const std::byte* from, uint64_t bytes) {
  const InUse in_use(*this);
  auto* target = static_cast<std::byte*>(to);
  absl::Status status;
  const auto part_at = [&](uint64_t at) { return std::min(bytes - at, kStageBytes); };
  const auto begin = [&](uint64_t at) {
    if (at >= bytes || !status.ok()) return;
    Stage& stage = stages_[at / kStageBytes % 2];
    status =
        Check(gpuMemcpyAsync(stage.memory, from + at, part_at(at), gpuMemcpyDeviceToHost, stream_),
              "a copy from the device failed");
    if (status.ok()) status = Check(gpuEventRecord(stage.done, stream_), "a copy failed");
    stage.busy = status.ok();
  };
  begin(0);
  for (uint64_t at = 0; at < bytes && status.ok(); at += kStageBytes) {
    begin(at + kStageBytes);
    Stage& stage = stages_[at / kStageBytes % 2];
    if (status.ok()) status = WaitFor(&stage);
    if (status.ok()) std::memcpy(target + at, stage.memory, part_at(at));
  }
  for (Stage& stage : stages_) status.Update(WaitFor(&stage));
  return status;
}

absl::Status GpuDevice::Copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  const InUse in_use(*this);
  const absl::Status status =
      Check(gpuMemcpyAsync(to, from, bytes, gpuMemcpyDeviceToDevice, stream_), "a copy failed");
  return status.ok() ? Synchronize() : status;
}

absl::Status GpuDevice::Synchronize() {
  return Check(gpuStreamSynchronize(stream_), "the device's work failed");
}

}  // namespace trine::hip
