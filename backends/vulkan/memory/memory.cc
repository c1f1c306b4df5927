#include "backends/vulkan/memory/memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/vulkan/runs/dispatch.h"

namespace trine::vulkan {

struct Arena {
  explicit Arena(uint64_t size) : bytes(size), ranges(size) {}

  uint64_t bytes;
  RangeAllocator ranges;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint32_t type = 0;
  uint64_t charged = 0;  // bytes taken from the type's heap
  std::byte* host = nullptr;
  bool imported = false;
  bool shared = false;  // divided among allocations, not made for one
  MemoryUse use = MemoryUse::kDevice;
};

namespace {

constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_DST_BIT;

VkBufferCreateInfo BufferInfo(uint64_t bytes, const void* next) {
  auto info = Info<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.pNext = next;
  info.size = bytes;
  info.usage = kUsage;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  return info;
}

std::string Wanted(uint64_t bytes, bool imported = false) {
  return imported ? absl::StrCat("host memory of ", bytes, " bytes could not be imported")
                  : absl::StrCat("memory of ", bytes, " bytes could not be had");
}

}  // namespace

Allocation& Allocation::operator=(Allocation&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  memory_ = std::exchange(other.memory_, nullptr);
  arena_ = std::exchange(other.arena_, nullptr);
  range_ = std::exchange(other.range_, {});
  host_ = std::exchange(other.host_, nullptr);
  host_cached_ = other.host_cached_;
  imported_ = other.imported_;
  return *this;
}

void Allocation::Reset() {
  if (memory_ != nullptr) memory_->GiveBack(arena_, range_);
  memory_ = nullptr;
  arena_ = nullptr;
  range_ = {};
  host_ = nullptr;
}

Memory::Memory(Device& device) : device_(device) {}

Memory::~Memory() {
  for (const auto& arena : arenas_) Destroy(arena.get());
}

absl::Status Memory::AllocateType(Arena* arena, uint32_t type, const void* next) {
  const uint32_t heap = device_.caps().memory.memoryTypes[type].heapIndex;
  const uint64_t left = device_.heaps().Left(heap);
  if (arena->charged > left) {
    return absl::ResourceExhaustedError(absl::StrCat(device_.caps().name, ": ",
                                                     Wanted(arena->charged, arena->imported),
                                                     ": heap ", heap, " has ", left, " left"));
  }
  auto info = Info<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  info.pNext = next;
  info.allocationSize = arena->charged;
  info.memoryTypeIndex = type;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  absl::Status status =
      device_.Check(device_.functions().AllocateMemory(device_.handle(), &info, nullptr, &memory),
                    Wanted(arena->charged, arena->imported));
  if (!status.ok()) return status;
  arena->memory = memory;
  arena->type = type;
  device_.heaps().Take(heap, arena->charged);
  status = device_.Check(
      device_.functions().BindBufferMemory(device_.handle(), arena->buffer, arena->memory, 0),
      absl::StrCat("a buffer of ", arena->bytes, " bytes could not be bound to its memory"));
  if (!status.ok()) Unback(arena);
  return status;
}

absl::Status Memory::Map(Arena* arena) {
  const VkMemoryPropertyFlags flags = device_.caps().memory.memoryTypes[arena->type].propertyFlags;
  if ((flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0) return absl::OkStatus();
  void* host = nullptr;
  absl::Status status = device_.Check(
      device_.functions().MapMemory(device_.handle(), arena->memory, 0, VK_WHOLE_SIZE, 0, &host),
      absl::StrCat("memory of ", arena->bytes, " bytes could not be mapped"));
  if (status.ok()) arena->host = static_cast<std::byte*>(host);
  return status;
}

absl::StatusOr<std::unique_ptr<Arena>> Memory::MakeArena(uint64_t bytes, MemoryUse use) {
  const DeviceTable& vk = device_.functions();
  auto arena = std::make_unique<Arena>(bytes);
  arena->use = use;
  const VkBufferCreateInfo info = BufferInfo(bytes, nullptr);
  absl::Status status =
      device_.Check(vk.CreateBuffer(device_.handle(), &info, nullptr, &arena->buffer),
                    absl::StrCat("a buffer of ", bytes, " bytes could not be made"));
  if (!status.ok()) return status;
  VkMemoryRequirements needs{};
  vk.GetBufferMemoryRequirements(device_.handle(), arena->buffer, &needs);
  arena->charged = needs.size;
  status = absl::ResourceExhaustedError(
      absl::StrCat(device_.caps().name, ": ", Wanted(bytes), ": no memory type fits"));
  for (const uint32_t type : MemoryTypesFor(device_.caps(), use, needs.memoryTypeBits)) {
    status = AllocateType(arena.get(), type, nullptr);
    if (!absl::IsResourceExhausted(status)) break;
  }
  if (status.ok()) status = Map(arena.get());
  if (status.ok()) return arena;
  Destroy(arena.get());
  return status;
}

absl::StatusOr<Allocation> Memory::TakeFrom(Arena& arena, uint64_t bytes) {
  const std::optional<uint64_t> offset = arena.ranges.Take(RoundUp(bytes, kAlignment), kAlignment);
  if (!offset.has_value()) return absl::ResourceExhaustedError("the arena is full");
  Allocation allocation;
  allocation.memory_ = this;
  allocation.arena_ = &arena;
  allocation.range_ = {arena.buffer, *offset, bytes};
  allocation.host_ = arena.host != nullptr ? arena.host + *offset : nullptr;
  const VkMemoryPropertyFlags flags = device_.caps().memory.memoryTypes[arena.type].propertyFlags;
  allocation.host_cached_ = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
  allocation.imported_ = arena.imported;
  return allocation;
}

absl::StatusOr<Allocation> Memory::Allocate(uint64_t bytes, MemoryUse use) {
  if (absl::Status status = device_.Health(); !status.ok()) return status;
  if (bytes == 0) return absl::InvalidArgumentError("an allocation needs some bytes");
  const uint64_t most = device_.caps().max_allocation;
  if (bytes > most) {
    return absl::ResourceExhaustedError(absl::StrCat(device_.caps().name, ": ", Wanted(bytes),
                                                     ": one allocation has at most ", most));
  }
  const uint64_t rounded = RoundUp(bytes, kAlignment);
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t arena_bytes = std::min(kArenaBytes, most);
  const bool shares = rounded <= arena_bytes / 2;
  for (const auto& arena : arenas_) {
    if (!shares || !arena->shared || arena->use != use) continue;
    if (auto allocation = TakeFrom(*arena, bytes); allocation.ok()) return allocation;
  }
  auto arena = MakeArena(shares ? arena_bytes : rounded, use);
  const bool shared = shares && arena.ok();
  // The memory that is left may be enough for this allocation alone.
  if (shares && absl::IsResourceExhausted(arena.status())) arena = MakeArena(rounded, use);
  if (!arena.ok()) return arena.status();
  (*arena)->shared = shared;
  arenas_.push_back(*std::move(arena));
  return TakeFrom(*arenas_.back(), bytes);
}

absl::Status Memory::ImportInto(Arena* arena, void* host, uint64_t bytes) {
  const DeviceTable& vk = device_.functions();
  constexpr auto kHandle = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  const std::string refused = Wanted(bytes, true);
  auto allowed =
      Info<VkMemoryHostPointerPropertiesEXT>(VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT);
  absl::Status status = device_.Check(
      vk.GetMemoryHostPointerPropertiesEXT(device_.handle(), kHandle, host, &allowed), refused);
  if (!status.ok()) return status;
  auto external =
      Info<VkExternalMemoryBufferCreateInfo>(VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  external.handleTypes = kHandle;
  const VkBufferCreateInfo info = BufferInfo(bytes, &external);
  status =
      device_.Check(vk.CreateBuffer(device_.handle(), &info, nullptr, &arena->buffer), refused);
  if (!status.ok()) return status;
  VkMemoryRequirements needs{};
  vk.GetBufferMemoryRequirements(device_.handle(), arena->buffer, &needs);
  const std::vector<uint32_t> types = MemoryTypesFor(device_.caps(), MemoryUse::kReadback,
                                                     needs.memoryTypeBits & allowed.memoryTypeBits);
  if (types.empty() || needs.size > bytes) {
    return absl::UnimplementedError(
        absl::StrCat(device_.caps().name, ": ", refused, ": no memory type fits it"));
  }
  auto import =
      Info<VkImportMemoryHostPointerInfoEXT>(VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  import.handleType = kHandle;
  import.pHostPointer = host;
  arena->charged = bytes;
  return AllocateType(arena, types.front(), &import);
}

absl::StatusOr<Allocation> Memory::Import(void* host, uint64_t bytes) {
  if (absl::Status status = device_.Health(); !status.ok()) return status;
  const DeviceCaps& caps = device_.caps();
  if (caps.import_alignment == 0 ||
      device_.functions().GetMemoryHostPointerPropertiesEXT == nullptr) {
    return absl::UnimplementedError(absl::StrCat(caps.name, " can't import host memory"));
  }
  // Checked here, because some drivers accept anything and fail when it is used.
  if (bytes == 0 || bytes % caps.import_alignment != 0 ||
      reinterpret_cast<uintptr_t>(host) % caps.import_alignment != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("imported memory and its size must be multiples of ", caps.import_alignment));
  }
  if (bytes > caps.max_allocation) {
    return absl::ResourceExhaustedError(absl::StrCat(
        caps.name, " imports at most ", caps.max_allocation, " bytes at once, not ", bytes));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  auto arena = std::make_unique<Arena>(RoundUp(bytes, kAlignment));
  arena->imported = true;
  if (absl::Status status = ImportInto(arena.get(), host, bytes); !status.ok()) {
    Destroy(arena.get());
    const bool known = absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
    return known ? status : absl::UnimplementedError(status.message());
  }
  arena->host = static_cast<std::byte*>(host);
  arenas_.push_back(std::move(arena));
  return TakeFrom(*arenas_.back(), bytes);
}

void Memory::Unback(Arena* arena) {
  if (arena->memory == VK_NULL_HANDLE) return;
  device_.functions().FreeMemory(device_.handle(), arena->memory, nullptr);
  arena->memory = VK_NULL_HANDLE;
  device_.heaps().GiveBack(device_.caps().memory.memoryTypes[arena->type].heapIndex,
                           arena->charged);
}

void Memory::Destroy(Arena* arena) {
  if (device_.abandoned()) return;
  if (arena->buffer != VK_NULL_HANDLE) {
    device_.functions().DestroyBuffer(device_.handle(), arena->buffer, nullptr);
  }
  Unback(arena);
}

void Memory::GiveBack(Arena* arena, const BufferRange& range) {
  std::lock_guard<std::mutex> lock(mutex_);
  arena->ranges.GiveBack(range.offset, RoundUp(range.bytes, kAlignment));
  if (!arena->ranges.all_free()) return;
  Destroy(arena);
  std::erase_if(arenas_, [arena](const auto& a) { return a.get() == arena; });
}

RangeAllocator::RangeAllocator(uint64_t bytes) : total_(bytes), free_bytes_(bytes) {
  if (bytes != 0) gaps_[0] = bytes;
}

std::optional<uint64_t> RangeAllocator::Take(uint64_t bytes, uint64_t alignment) {
  auto best = gaps_.end();
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    const uint64_t skip = -gap->first & (alignment - 1);
    const bool fits = skip <= gap->second && bytes <= gap->second - skip;
    if (fits && (best == gaps_.end() || gap->second < best->second)) best = gap;
  }
  if (best == gaps_.end()) return std::nullopt;
  const auto [begin, length] = *best;
  const uint64_t offset = (begin + alignment - 1) & ~(alignment - 1);
  gaps_.erase(best);
  if (offset != begin) gaps_[begin] = offset - begin;
  const uint64_t rest = length - (offset - begin) - bytes;
  if (rest != 0) gaps_[offset + bytes] = rest;
  free_bytes_ -= bytes;
  return offset;
}

void RangeAllocator::GiveBack(uint64_t offset, uint64_t bytes) {
  free_bytes_ += bytes;
  const auto after = gaps_.lower_bound(offset);
  if (after != gaps_.end() && after->first == offset + bytes) {
    bytes += after->second;
    gaps_.erase(after);
  }
  const auto next = gaps_.lower_bound(offset);
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  gaps_[offset] = bytes;
}

}  // namespace trine::vulkan
