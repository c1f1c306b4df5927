// What there is to place a model on: the machine's facts and the plugins' devices joined into named
// devices and memory pools, each with the reason why it is or isn't used.
#ifndef TRINE_DISPATCH_INVENTORY_H_
#define TRINE_DISPATCH_INVENTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "detect/machine.h"
#include "plugins/registry.h"

namespace trine {

// A chip: seen by a plugin, by the machine's own files, or by both.
struct InventoryDevice {
  static constexpr size_t kNone = static_cast<size_t>(-1);

  std::string tier_name;     // "cpu", "igpu0", "dgpu1", "other0": what a split names
  std::string backend_name;  // "CPU", "Vulkan0", "ROCm0": what people know from elsewhere
  std::string chip;          // what the chip is called
  std::string tier;          // "cpu", "igpu", "dgpu", "other"
  bool used = false;
  bool on_request = false;  // not used by itself, but where a split names it
  std::string reason;
  size_t registry_device = kNone;  // index into Registry::devices
  size_t machine_gpu = kNone;      // index into Machine::gpus
  std::string memory_pool;
  std::string bandwidth_domain;
};

// Memory that devices share. The CPU and an integrated GPU draw on one pool.
struct MemoryPool {
  std::string name;
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;
  std::string limit;                 // where a bound below the physical size comes from
  std::vector<std::string> devices;  // tier names
};

struct Inventory {
  detect::Machine machine;
  Registry registry;
  std::vector<InventoryDevice> devices;  // used ones first: cpu, igpu, dgpu, other
  std::vector<MemoryPool> pools;
  detect::ComputeTier usable_tier = detect::ComputeTier::kCpuOnly;  // by the devices in use
  std::vector<std::string> problems;  // what keeps the machine from being used as it could be
};

// Pure: joins, names and judges.
Inventory TakeInventory(detect::Machine machine, Registry registry);

}  // namespace trine

#endif  // TRINE_DISPATCH_INVENTORY_H_
