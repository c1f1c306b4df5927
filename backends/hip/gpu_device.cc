#include "backends/hip/gpu_device.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine::hip {
namespace {

// The size of a stage: large enough that starting a copy costs little in comparison, small enough
// to keep two of them pinned.
constexpr uint64_t kStageBytes = 8 << 20;

constexpr uint64_t kMostBytes = uint64_t{1} << 48;

// The bytes of files that this process has pinned. Pages that are pinned can't be dropped, so that
// not all of the machine's memory may be.
std::atomic<uint64_t> pinned_file_bytes = 0;

// Returns the most bytes of files that the process may pin: three quarters of the machine's memory.
uint64_t MostPinnedFileBytes() {
  const auto pages = static_cast<uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L));
  return pages / 4 * 3 * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void CopyPieces(std::byte* to, const HostPieces& from, uint64_t begin, uint64_t end) {
  while (begin < end) {
    const uint64_t within = begin % from.bytes;
    const uint64_t bytes = std::min(from.bytes - within, end - begin);
    std::memcpy(to + begin, from.At(begin / from.bytes) + within, bytes);
    begin += bytes;
  }
}

InUse::InUse(GpuDevice& device) : lock_(device.mutex_) { (void)gpuSetDevice(device.index_); }

GpuMemory& GpuMemory::operator=(GpuMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(kind_, other.kind_);
  return *this;
}

GpuMemory::~GpuMemory() {
  if (data_ == nullptr) return;
  const InUse in_use(*device_);
  switch (kind_) {
    case MemoryKind::kDevice:
      (void)gpuFree(data_);
      break;
    case MemoryKind::kPinned:
      (void)gpuHostFree(data_);
      break;
    case MemoryKind::kPinnedFile:
      pinned_file_bytes -= bytes_;
      [[fallthrough]];
    case MemoryKind::kRegistered:
      (void)gpuHostUnregister(data_);
      break;
    case MemoryKind::kPageable:
      break;
  }
}

absl::StatusOr<std::unique_ptr<GpuDevice>> GpuDevice::Open(int index, GpuWait wait) {
  std::unique_ptr<GpuDevice> device(new GpuDevice(index));
  const InUse in_use(*device);
  // Other users of the runtime in this process may have set it already.
  if (gpuSetWait(wait) != gpuSuccess) (void)gpuGetLastError();
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
  // Kernels read whole words, even at the end of a tensor that ends within a word.
  if (bytes > kMostBytes) return absl::ResourceExhaustedError("no device has so much memory");
  const uint64_t whole = (bytes + 15) / 16 * 16;
  const absl::Status status = Check(of_host ? gpuHostMalloc(&data, whole) : gpuMalloc(&data, whole),
                                    "memory could not be allocated");
  if (!status.ok()) return status;
  return GpuMemory(this, static_cast<std::byte*>(data), bytes,
                   of_host ? MemoryKind::kPinned : MemoryKind::kDevice);
}

GpuMemory GpuDevice::ImportReadOnly(void* data, uint64_t bytes, std::string* not_pinned) {
  auto* const place = static_cast<std::byte*>(data);
  const InUse in_use(*this);
  if (pinned_file_bytes + bytes > MostPinnedFileBytes()) {
    *not_pinned = "that would be more than three quarters of the machine's memory";
    return GpuMemory(this, place, bytes, MemoryKind::kPageable);
  }
  const gpuError error = gpuHostRegisterReadOnly(data, bytes);
  if (error == gpuSuccess) {
    pinned_file_bytes += bytes;
    return GpuMemory(this, place, bytes, MemoryKind::kPinnedFile);
  }
  (void)gpuGetLastError();
  *not_pinned = gpuGetErrorString(error);
  return GpuMemory(this, place, bytes, MemoryKind::kPageable);
}

absl::StatusOr<GpuMemory> GpuDevice::Import(void* data, uint64_t bytes) {
  auto* const place = static_cast<std::byte*>(data);
  const InUse in_use(*this);
  const gpuError error = gpuHostRegister(data, bytes);
  if (error == gpuSuccess) return GpuMemory(this, place, bytes, MemoryKind::kRegistered);
  (void)gpuGetLastError();
  // A failure to pin says nothing about the device, unless the device was lost before.
  const std::string why = absl::StrCat("memory could not be pinned: ", gpuGetErrorString(error));
  if (absl::Status status = Synchronize(); !status.ok()) return status;
  if (error == gpuErrorMemoryAllocation) return absl::ResourceExhaustedError(why);
  return absl::UnimplementedError(why);
}

absl::Status GpuDevice::WaitFor(Stage* stage) {
  if (!stage->busy) return absl::OkStatus();
  stage->busy = false;
  return Check(gpuEventSynchronize(stage->done), "a copy failed");
}

absl::Status GpuDevice::StartPart(std::byte* to, const HostPieces& from, gpuStream stream,
                                  const HostCopy& copy) {
  Stage& stage = stages_[turn_++ % 2];
  absl::Status status = WaitFor(&stage);
  if (!status.ok()) return status;
  if (copy) {
    copy(stage.memory, from);
  } else {
    CopyPieces(stage.memory, from, 0, from.AllBytes());
  }
  status = Check(gpuMemcpyAsync(to, stage.memory, from.AllBytes(), gpuMemcpyHostToDevice, stream),
                 "a copy to the device failed");
  if (status.ok()) status = Check(gpuEventRecord(stage.done, stream), "a copy failed");
  stage.busy = status.ok();
  return status;
}

absl::Status GpuDevice::StartWrite(std::byte* to, const HostPieces& from, gpuStream stream,
                                   const HostCopy& copy) {
  absl::Status status;
  if (from.bytes <= kStageBytes / 2) {  // several pieces in a stage
    const uint64_t most = kStageBytes / std::max<uint64_t>(from.bytes, 1);
    for (uint64_t first = 0; first < from.count && status.ok(); first += most) {
      const uint64_t count = std::min(most, from.count - first);
      status = StartPart(to + first * from.bytes, {from.At(first), from.bytes, count, from.pitch},
                         stream, copy);
    }
    return status;
  }
  for (uint64_t piece = 0; piece < from.count; ++piece) {  // a piece in several stages
    for (uint64_t done = 0; done < from.bytes && status.ok(); done += kStageBytes) {
      const uint64_t part = std::min(from.bytes - done, kStageBytes);
      status =
          StartPart(to + piece * from.bytes + done, {from.At(piece) + done, part}, stream, copy);
    }
  }
  return status;
}

absl::Status GpuDevice::Write(std::byte* to, const void* from, uint64_t bytes) {
  const InUse in_use(*this);
  absl::Status status = StartWrite(to, {static_cast<const std::byte*>(from), bytes}, stream_);
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
    status = WaitFor(&stage);
    if (!status.ok()) return;
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
  return CopyPinned(to, from, bytes, gpuMemcpyDeviceToDevice);
}

absl::Status GpuDevice::CopyPinned(std::byte* to, const std::byte* from, uint64_t bytes,
                                   gpuMemcpyKind kind) {
  const InUse in_use(*this);
  const absl::Status status =
      Check(gpuMemcpyAsync(to, from, bytes, kind, stream_), "a copy failed");
  return status.ok() ? Synchronize() : status;
}

absl::Status GpuDevice::Synchronize() {
  return Check(gpuStreamSynchronize(stream_), "the device's work failed");
}

absl::Status GpuStatus(gpuError error, absl::string_view what) {
  if (error == gpuSuccess) return absl::OkStatus();
  std::string message = absl::StrCat(what, ": ", gpuGetErrorString(error));
#if defined(TRINE_GPU_HOST)
  if (const std::string why = emulator::LastFailure(); !why.empty()) {
    absl::StrAppend(&message, " (", why, ")");
  }
#endif
  if (error == gpuErrorMemoryAllocation) {
    (void)gpuGetLastError();  // clears the error, else the next call reports it too
    return absl::ResourceExhaustedError(message);
  }
  return absl::UnavailableError(message);
}

}  // namespace trine::hip
