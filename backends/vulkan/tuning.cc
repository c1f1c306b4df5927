#include "backends/vulkan/tuning.h"

#include <algorithm>

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

// What is known of GEMV on these: Intel likes 16 invocations and two rows, GCN more rows, RDNA its
// narrow waves; NVIDIA was measured (docs/vulkan-products.md); others their own.
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
      // A workgroup is a loop here: the fewer, the less is spent on each.
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
  // Small GPUs have met their watchdogs at 2 Gflop for each of a few cores; large ones have not.
  tuning->submit_operations = caps.kind == DeviceKind::kDiscrete ? 200'000'000'000 : 10'000'000'000;
  tuning->submit_dispatches = 400;
}

// All members that are numbers, by name.
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

}  // namespace

bool ExecutorIsBuilt(Executor executor) {
  return executor == Executor::kNative || TRINE_VULKAN_KOMPUTE;
}

Tuning ChooseTuning(const DeviceCaps& caps) {
  Tuning tuning;
  // Emulated by the driver it is no better than our own emulation, except that on a software driver
  // it is compiled to the same loop: tests run the path there.
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
  // Each step: flags a type must have, and flags it must not.
  struct Step {
    VkMemoryPropertyFlags with, without;
  };
  std::vector<Step> steps;
  switch (use) {
    case MemoryUse::kDevice:
      // Unified memory is mapped, so that filling it is no copy. Elsewhere the part of the device's
      // memory that the host sees may be small: it is left to others. The host's memory would be
      // read through the bus by every kernel: better to fail.
      steps = caps.unified_memory
                  ? std::vector<Step>{{kLocal | kVisible, 0}, {kLocal, 0}, {kVisible, 0}}
                  : std::vector<Step>{{kLocal, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT}, {kLocal, 0}};
      break;
    case MemoryUse::kUpload:
      steps = caps.unified_memory ? std::vector<Step>{{kLocal | kVisible, 0}, {kVisible, 0}}
                                  : std::vector<Step>{{kVisible, kLocal}, {kVisible, 0}};
      break;
    case MemoryUse::kReadback:  // reading what is not cached is slow beyond belief
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

}  // namespace trine::vulkan
