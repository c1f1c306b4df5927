#include "runtime/model/lent_memory.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

namespace trine {
namespace {

// Not lost from sight: whoever looks for leaks finds it.
void LeaveForGood(std::byte* memory) {
  static std::mutex mutex;
  static auto* const left = new std::vector<std::byte*>();
  const std::lock_guard lock(mutex);
  left->push_back(memory);
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

}  // namespace trine
