#include "runtime/model/run/stage_memory.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

// Keeps a pointer to the memory, so that leak checkers do not report it.
void LeaveForGood(std::byte* memory) {
  static std::mutex mutex;
  static auto* const left = new std::vector<std::byte*>();
  const std::lock_guard lock(mutex);
  left->push_back(memory);
}

constexpr uint64_t kPage = 4096;

bool CanImportWritable(const trine_device_info& info) {
  const bool ruled_out =
      (info.imports & TRINE_IMPORTS_TRIED) != 0 && (info.imports & TRINE_IMPORTS_WRITABLE) == 0;
  return info.import_alignment != 0 && !ruled_out;
}

}  // namespace

LentMemory::LentMemory(uint64_t alignment, uint64_t bytes)
    : memory_(static_cast<std::byte*>(std::aligned_alloc(alignment, bytes))) {}

LentMemory::~LentMemory() {
  const auto at_work = [](const std::shared_ptr<Device>& device) {
    return device->was_lost() && (device->info().flags & TRINE_DEVICE_ASYNC) != 0;
  };
  if (std::any_of(users_.begin(), users_.end(), at_work)) {
    LeaveForGood(memory_);
  } else {
    std::free(memory_);
  }
}

absl::StatusOr<Buffer> LentMemory::LendTo(const std::shared_ptr<Device>& device, uint64_t bytes,
                                          uint32_t kind) {
  trine_import_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.memory = kind;
  desc.host_ptr = memory_;
  desc.bytes = bytes;
  users_.push_back(device);
  return Buffer::Import(device, desc);
}

absl::StatusOr<std::unique_ptr<StageBorder>> StageBorder::Create(
    size_t places, uint64_t bytes, const std::vector<std::shared_ptr<Device>>& devices) {
  uint64_t grain = kPage;
  for (const std::shared_ptr<Device>& device : devices) {
    const trine_device_info& info = device->info();
    if (!CanImportWritable(info)) continue;
    grain = std::max<uint64_t>({grain, info.import_alignment, info.buffer_alignment});
  }
  std::unique_ptr<StageBorder> border(new StageBorder());
  border->places_ = places;
  border->slot_bytes_ = (bytes + grain - 1) / grain * grain;
  border->memory_ = std::make_unique<LentMemory>(grain, border->bytes());
  if (border->memory_->data() == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no memory for ", border->bytes(), " bytes between two segments"));
  }
  return border;
}

absl::StatusOr<std::vector<trine_span>> StageBorder::Import(const std::shared_ptr<Device>& device,
                                                            uint64_t bytes) {
  const trine_device_info& info = device->info();
  const bool fits = info.import_alignment != 0 &&
                    reinterpret_cast<uintptr_t>(memory_->data()) % info.import_alignment == 0 &&
                    slot_bytes_ % info.import_alignment == 0 &&
                    slot_bytes_ % std::max<uint64_t>(info.buffer_alignment, 1) == 0;
  std::vector<trine_span> spans;
  if (!fits || !CanImportWritable(info)) return spans;
  auto buffer = memory_->LendTo(device, this->bytes(), TRINE_MEMORY_IO);
  if (!buffer.ok()) {
    // A working device that cannot import gets copies instead.
    const bool well =
        FaultyDevice(buffer.status()).empty() || absl::IsResourceExhausted(buffer.status());
    return well ? absl::StatusOr<std::vector<trine_span>>(spans) : buffer.status();
  }
  for (size_t i = 0; i < places_; ++i) spans.push_back(buffer->Span(i * slot_bytes_, bytes));
  buffers_.push_back(*std::move(buffer));
  return spans;
}

absl::Status StageCaches::Share(const std::shared_ptr<Device>& home,
                                const std::shared_ptr<Device>& other,
                                const std::map<size_t, uint64_t>& sizes) {
  constexpr uint64_t kPage = 4096;
  const uint64_t grain =
      std::max<uint64_t>({kPage, home->info().import_alignment, other->info().import_alignment});
  absl::Status status;
  for (const auto& [number, bytes] : sizes) {
    const uint64_t whole = (bytes + grain - 1) / grain * grain;
    LentMemory& memory = memory_.try_emplace(number, grain, whole).first->second;
    if (memory.data() == nullptr) status = absl::ResourceExhaustedError("there is no memory");
    for (const std::shared_ptr<Device>& device : {home, other}) {
      if (!status.ok()) break;
      auto buffer = memory.LendTo(device, whole, TRINE_MEMORY_STATE);
      status = buffer.status();
      if (!buffer.ok()) continue;
      const auto made = buffers_.emplace(std::pair(device.get(), number), *std::move(buffer));
      caches_[number] = {&made.first->second, bytes};
    }
    bytes_ += bytes;
  }
  if (status.ok()) return status;
  caches_.clear();
  buffers_.clear();
  memory_.clear();
  bytes_ = 0;
  return status;
}

const Buffer* StageCaches::Find(const Device& device, size_t number) const {
  const auto found = buffers_.find({&device, number});
  return found == buffers_.end() ? nullptr : &found->second;
}

absl::StatusOr<trine_span> StageCaches::Of(const std::shared_ptr<Device>& device, size_t number,
                                           uint64_t bytes) {
  const auto found = buffers_.find({device.get(), number});
  if (found != buffers_.end()) return found->second.Span(0, bytes);
  auto buffer = Buffer::Allocate(device, bytes, TRINE_MEMORY_STATE);
  if (!buffer.ok()) return buffer.status();
  bytes_ += bytes;
  const auto made = buffers_.emplace(std::pair(device.get(), number), *std::move(buffer));
  caches_[number] = {&made.first->second, bytes};
  return made.first->second.Span(0, bytes);
}

absl::Status StageCaches::ReadBlock(int64_t n_blocks, int32_t block, std::byte* to) const {
  for (const auto& [number, cache] : caches_) {
    const uint64_t bytes = cache.bytes / static_cast<uint64_t>(n_blocks);
    const uint64_t offset = static_cast<uint64_t>(block) * bytes;
    if (absl::Status s = cache.buffer->Read(offset, to, bytes); !s.ok()) return s;
    to += bytes;
  }
  return absl::OkStatus();
}

absl::Status StageCaches::WriteBlock(int64_t n_blocks, int32_t block, const std::byte* from) const {
  for (const auto& [number, cache] : caches_) {
    const uint64_t bytes = cache.bytes / static_cast<uint64_t>(n_blocks);
    const uint64_t offset = static_cast<uint64_t>(block) * bytes;
    if (absl::Status s = cache.buffer->Write(offset, from, bytes); !s.ok()) return s;
    from += bytes;
  }
  return absl::OkStatus();
}

absl::Status StageCaches::CopyBlock(int64_t n_blocks, int32_t from, int32_t to) const {
  std::vector<std::byte> between;
  for (const auto& [number, cache] : caches_) {
    const uint64_t bytes = cache.bytes / static_cast<uint64_t>(n_blocks);
    const uint64_t source = static_cast<uint64_t>(from) * bytes;
    const uint64_t target = static_cast<uint64_t>(to) * bytes;
    // If the host sees the memory, it copies the block without a buffer in between.
    if (const auto* seen = static_cast<const std::byte*>(cache.buffer->host_ptr())) {
      if (absl::Status s = cache.buffer->Write(target, seen + source, bytes); !s.ok()) return s;
      continue;
    }
    between.resize(bytes);
    absl::Status status = cache.buffer->Read(source, between.data(), bytes);
    if (status.ok()) status = cache.buffer->Write(target, between.data(), bytes);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace trine
