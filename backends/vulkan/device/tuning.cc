#include "backends/vulkan/device/tuning.h"

#include <algorithm>
#include <bit>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace trine::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kVisible =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

bool SizeAllowed(const DeviceCaps& caps, uint32_t size) {
  return caps.can_require_subgroup_size && size >= caps.min_subgroup_size &&
         size <= caps.max_subgroup_size && (size & (size - 1)) == 0;
}

// Uses what is known about GEMV: Intel prefers 16 invocations and two rows, GCN two rows, RDNA its
// narrow waves, NVIDIA was measured (docs/vulkan-products.md), others keep their own size.
void TuneGemv(const DeviceCaps& caps, Tuning* tuning) {
  uint32_t wanted = 0, subgroups = 1;
  switch (caps.architecture) {
    case Architecture::kIntelXe1:
    case Architecture::kIntelXe2:
    case Architecture::kIntelOther:
      wanted = 16;
      tuning->gemv_rows = 2;
      break;
    case Architecture::kAmdGcn:
      wanted = 64;
      tuning->gemv_rows = 2;
      break;
    case Architecture::kAmdRdna:
    case Architecture::kAmdRdna3:
      wanted = 32;
      break;
    case Architecture::kNvidia:
      wanted = 32;
      subgroups = 4;
      tuning->gemv_rows = 2;
      break;
    case Architecture::kSoftware:
      // A workgroup is a loop here: fewer workgroups have less overhead.
      wanted = caps.subgroup_size;
      tuning->gemv_rows = 8;
      break;
    case Architecture::kOther:
      break;
  }
  if (SizeAllowed(caps, wanted)) tuning->subgroup_size = wanted;
  const uint32_t size = tuning->subgroup_size != 0 ? tuning->subgroup_size : caps.subgroup_size;
  tuning->gemv_workgroup =
      std::clamp<uint32_t>(size * subgroups, 8, caps.max_workgroup_invocations);
}

void TuneSubmissions(const DeviceCaps& caps, Tuning* tuning) {
  // Small GPUs have hit their watchdogs at 2 Gflop for each of a few cores; large ones have not.
  tuning->submit_operations = caps.kind == DeviceKind::kDiscrete ? 200'000'000'000 : 10'000'000'000;
  tuning->submit_dispatches = 400;
}

// Returns the member of that name if it is a 32-bit number, otherwise null.
uint32_t* Member(Tuning* tuning, const std::string& name) {
  if (name == "subgroup_size") return &tuning->subgroup_size;
  if (name == "elementwise_workgroup") return &tuning->elementwise_workgroup;
  if (name == "gemv_workgroup") return &tuning->gemv_workgroup;
  if (name == "gemv_rows") return &tuning->gemv_rows;
  if (name == "submit_dispatches") return &tuning->submit_dispatches;
  return nullptr;
}

absl::Status OverrideFlag(bool there, const char* what, const std::string& value, bool* flag) {
  if (value != "0" && value != "1") {
    return absl::InvalidArgumentError(absl::StrCat(what, "=", value, ": 0 or 1 is needed"));
  }
  if (value == "1" && !there) {
    return absl::InvalidArgumentError(absl::StrCat(what, "=1: the device does not have it"));
  }
  *flag = value == "1";
  return absl::OkStatus();
}

absl::Status OverrideExecutor(const std::string& value, Tuning* tuning) {
  if (value != "native" && value != "kompute") {
    return absl::InvalidArgumentError(
        absl::StrCat("executor=", value, ": native or kompute is needed"));
  }
  const Executor executor = value == "native" ? Executor::kNative : Executor::kKompute;
  if (!ExecutorIsBuilt(executor)) {
    return absl::InvalidArgumentError(
        "executor=kompute: this build is without Kompute, which was not found when it was "
        "configured (TRINE_WITH_KOMPUTE)");
  }
  tuning->executor = executor;
  return absl::OkStatus();
}

// Shrinks tiles and workgroups until they fit the device's shared memory. The smallest take less
// than the 16 KiB that every device has. If even they do not fit, ops are refused one by one.
void FitSharedMemory(const DeviceCaps& caps, ProductTuning* products) {
  ProductTuning& p = *products;
  while (GemmSharedBytes(p) > caps.max_shared_bytes && p.gemm_rows * p.gemm_columns > 1) {
    (p.gemm_columns > p.gemm_rows ? p.gemm_columns : p.gemm_rows) /= 2;
  }
  while (GemvSharedBytes(p) > caps.max_shared_bytes &&
         (p.gemv_blocks > 1 || p.gemv_workgroup > 32)) {
    p.gemv_blocks > 1 ? p.gemv_blocks = 1 : p.gemv_workgroup /= 2;
  }
}

// Returns `size`, or 0 if a workgroup is not a whole, allowed number of subgroups of that size.
uint32_t RequiredSubgroup(const DeviceCaps& caps, uint32_t size, uint32_t workgroup) {
  const bool whole = size != 0 && workgroup % size == 0;
  return whole && workgroup / size <= caps.max_workgroup_subgroups ? size : 0;
}

}  // namespace

bool ExecutorIsBuilt(Executor executor) {
  return executor == Executor::kNative || TRINE_VULKAN_KOMPUTE;
}

Tuning ChooseTuning(const DeviceCaps& caps) {
  Tuning tuning;
  // OpSDot that the driver emulates is no better than the shaders' own emulation. A software driver
  // compiles both to the same loop, so it uses OpSDot and tests cover that path.
  tuning.int_dot =
      caps.int_dot && (caps.int_dot_accelerated || caps.architecture == Architecture::kSoftware);
  tuning.elementwise_workgroup = std::min<uint32_t>(256, caps.max_workgroup_invocations);
  TuneGemv(caps, &tuning);
  TuneSubmissions(caps, &tuning);
  return tuning;
}

bool HasTuning(const std::string& name) {
  Tuning any;
  return name == "executor" || name == "int_dot" || name == "fuse" || name == "submit_operations" ||
         Member(&any, name) != nullptr;
}

absl::Status OverrideTuning(const DeviceCaps& caps, const std::string& name,
                            const std::string& value, Tuning* tuning) {
  if (name == "executor") return OverrideExecutor(value, tuning);
  if (name == "int_dot") return OverrideFlag(caps.int_dot, "int_dot", value, &tuning->int_dot);
  if (name == "fuse") return OverrideFlag(true, "fuse", value, &tuning->fuse);
  uint64_t number = 0;
  uint32_t* member = Member(tuning, name);
  if (member == nullptr && name != "submit_operations") {
    return absl::InvalidArgumentError(absl::StrCat("there is no tuning called ", name));
  }
  const bool may_be_zero = name == "subgroup_size";
  if (!absl::SimpleAtoi(value, &number) || (number == 0 && !may_be_zero) ||
      (member != nullptr && number > UINT32_MAX)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "=", value, ": a number from ", may_be_zero ? 0 : 1, " to ",
                     member != nullptr ? UINT32_MAX : UINT64_MAX, " is needed"));
  }
  if (name == "subgroup_size" && number != 0 && !SizeAllowed(caps, static_cast<uint32_t>(number))) {
    return absl::InvalidArgumentError(absl::StrCat("subgroup_size=", value, ": the device has ",
                                                   caps.min_subgroup_size, " to ",
                                                   caps.max_subgroup_size));
  }
  const bool workgroup = name == "gemv_workgroup" || name == "elementwise_workgroup";
  if (workgroup && number > caps.max_workgroup_invocations) {
    return absl::InvalidArgumentError(absl::StrCat(name, "=", value, ": the device has at most ",
                                                   caps.max_workgroup_invocations));
  }
  if (member != nullptr) {
    *member = static_cast<uint32_t>(number);
  } else {
    tuning->submit_operations = number;
  }
  return absl::OkStatus();
}

std::vector<uint32_t> MemoryTypesFor(const DeviceCaps& caps, MemoryUse use, uint32_t allowed) {
  // The flags that a type must have and the flags that it must not have.
  struct Step {
    VkMemoryPropertyFlags with, without;
  };
  std::vector<Step> steps;
  switch (use) {
    case MemoryUse::kDevice:
      // Unified memory is mapped, so that filling it needs no copy. Elsewhere the part of the
      // device's memory that the host sees may be small, so it comes last. The host's memory is not
      // used: every kernel would read it through the bus, and failing is better.
      steps = caps.unified_memory
                  ? std::vector<Step>{{kLocal | kVisible, 0}, {kLocal, 0}, {kVisible, 0}}
                  : std::vector<Step>{{kLocal, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT}, {kLocal, 0}};
      break;
    case MemoryUse::kUpload:
      steps = caps.unified_memory ? std::vector<Step>{{kLocal | kVisible, 0}, {kVisible, 0}}
                                  : std::vector<Step>{{kVisible, kLocal}, {kVisible, 0}};
      break;
    case MemoryUse::kReadback:  // reading uncached memory is extremely slow
      steps = {{kVisible | kCached, 0}, {kVisible, 0}};
      break;
  }
  // Protected, lazily allocated and device-coherent types are for other purposes.
  constexpr VkMemoryPropertyFlags kKnown = kLocal | kVisible | kCached;
  std::vector<uint32_t> types;
  for (const Step& step : steps) {
    for (uint32_t i = 0; i < caps.memory.memoryTypeCount; ++i) {
      const VkMemoryPropertyFlags flags = caps.memory.memoryTypes[i].propertyFlags;
      const bool coherent =
          (flags & kVisible) == kVisible || (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0;
      if ((allowed >> i & 1) == 0 || !coherent || (flags & step.with) != step.with ||
          (flags & step.without) != 0 || (flags & ~kKnown) != 0) {
        continue;
      }
      if (std::find(types.begin(), types.end(), i) == types.end()) types.push_back(i);
    }
  }
  return types;
}

ProductTuning ChooseProductTuning(const DeviceCaps& caps, const Tuning& tuning) {
  ProductTuning products;
  products.int_dot = tuning.int_dot;
  // A workgroup of 64 has two rows of floats or eight of blocks: few enough to finish early.
  products.gemv_workgroup =
      std::clamp<uint32_t>(std::max(std::bit_floor(tuning.gemv_workgroup), tuning.subgroup_size),
                           64, std::bit_floor(caps.max_workgroup_invocations));
  products.gemv_rows = std::bit_floor(std::min<uint32_t>(tuning.gemv_rows, 4));
  products.gemv_blocks = 2;
  if (!products.int_dot) {  // unpacking bytes takes registers that a large tile does not leave
    products.gemm_rows = 2;
    products.gemm_columns = 4;
  }
  switch (caps.kind) {
    case DeviceKind::kDiscrete:  // much must be in flight: use all lanes, whatever the rows
      products.gemv_lanes = 32;
      products.gemv_fill = 32768;
      break;
    case DeviceKind::kCpu:  // lanes are a loop here, and pipelines take long to compile
      products.gemv_fill = 0;
      products.gemv_blocks = 1;
      products.gemm_rows = 2;
      products.gemm_columns = 4;
      break;
    case DeviceKind::kIntegrated:
    case DeviceKind::kOther:
      break;
  }
  FitSharedMemory(caps, &products);
  products.gemv_subgroup = RequiredSubgroup(caps, tuning.subgroup_size, products.gemv_workgroup);
  return products;
}

}  // namespace trine::vulkan
