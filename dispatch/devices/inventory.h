// Lists what a model can be placed on: devices with their names, and memory pools. Joins what
// detection knows about the machine with the devices that plugins found, and says why each device
// is or isn't used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "detect/machine.h"
#include "plugins/registry.h"

namespace trine {

// A device that a plugin found, or a GPU of the machine that no plugin found.
struct InventoryDevice {
  static constexpr size_t kNone = static_cast<size_t>(-1);

  // The name in a split: "cpu", "igpu0", "dgpu1"; for a device of no tier its plugin's name and a
  // number, "blas0"; "": it can't be used.
  std::string tier_name;
  std::string backend_name;  // "CPU", "Vulkan0", "ROCm0": the name in other engines; "": no plugin
  std::string chip;          // the chip's product name
  std::string tier;          // "cpu", "igpu", "dgpu", "other"
  bool used = false;
  bool on_request = false;         // not used, except where the user names the device
  std::string reason;              // why the device is or isn't used
  size_t registry_device = kNone;  // index into Registry::devices; kNone: no plugin found it
  size_t machine_gpu = kNone;      // index into Machine::gpus; kNone: it is none of these
  std::string memory_pool;         // the MemoryPool's name
  std::string bandwidth_domain;    // devices of the same domain share a memory bus
};

// Memory that counts once, however many devices use it. The CPU and an integrated GPU share a pool;
// a discrete GPU has its own pool.
struct MemoryPool {
  std::string name;
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;
  std::string limit;                 // what makes it smaller than the physical memory; "": nothing
  std::vector<std::string> devices;  // tier names of the devices in use that draw on the pool
};

struct Inventory {
  detect::Machine machine;
  Registry registry;
  // Devices in use come first, then those for use on request, then the rest. Each part is in the
  // order cpu, igpu, dgpu, other.
  std::vector<InventoryDevice> devices;
  std::vector<MemoryPool> pools;
  // The tier that the devices in use make up.
  detect::ComputeTier usable_tier = detect::ComputeTier::kCpuOnly;
  std::vector<std::string> problems;  // sentences that say why no model can run
};

// Joins what detection and plugins found, names the devices, and decides on pools and tier. A pure
// function.
Inventory TakeInventory(detect::Machine machine, Registry registry);

// Finds a device by tier ("cpu", "igpu", "dgpu1") or by the name that other engines use ("CPU",
// "Vulkan0"). Returns NOT_FOUND otherwise: with the reason if the device exists but is not used,
// else with a list of the usable devices and the reasons why plugins offer none.
absl::StatusOr<const InventoryDevice*> FindDevice(const Inventory& inventory,
                                                  const std::string& name);

// Lists the devices that layers may be placed on: "cpu, igpu0 (Vulkan0)".
std::string UsableDevices(const Inventory& inventory);

// Says why plugins were refused or offer no usable device: "; vulkan: why it has no device; ...".
// Returns "" if there is no such plugin.
std::string IdlePlugins(const Inventory& inventory);
// Names the devices that are used only on request: "; igpu0 is used only where -ts or -dev names
// it". Returns "" if there is none.
std::string OnRequestOnly(const Inventory& inventory);

// Lists the devices that would be used with --numerics fast, and are not used without it.
std::vector<InventoryDevice> DevicesTooFast(const Inventory& inventory);

// Returns the device's name in other engines, "Vulkan0"; "Vulkan0, only where it is named" for a
// device used only on request.
std::string OwnName(const InventoryDevice& device);

}  // namespace trine
