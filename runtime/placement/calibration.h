// What devices were measured to cost, kept in a file of the user's between runs.
#ifndef TRINE_RUNTIME_PLACEMENT_CALIBRATION_H_
#define TRINE_RUNTIME_PLACEMENT_CALIBRATION_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/device_costs.h"
#include "dispatch/inventory.h"

namespace trine {

class Calibration {
 public:
  // TRINE_CALIBRATION where it is set ("off": none, ""), else trine/calibration.json in the user's
  // cache folder; "" where there is none.
  static std::string DefaultPath();

  // Empty where there is no file, or no path. DATA_LOSS, naming it, where there is something else.
  static absl::StatusOr<Calibration> Read(const std::string& path);
  // Replaces the file in one step, and makes its folder.
  absl::Status Write(const std::string& path) const;
  // Writes these entries and whatever else the file has by then: somebody else may have added to it
  // meanwhile. A file that is damaged, or another version's, is replaced. Others who do the same
  // wait for each other, by a lock beside the file.
  absl::Status AddTo(const std::string& path) const;
  // Whether the file could be written, without touching it.
  static absl::Status CheckWritable(const std::string& path);

  // Null: it was not measured, or not this build of its plugin, or under another driver.
  const DeviceCosts* Find(const std::string& key) const;
  void Set(const std::string& key, DeviceCosts costs) { devices_[key] = std::move(costs); }
  size_t size() const { return devices_.size(); }
  // Entries of the file that were passed over.
  size_t senseless() const { return senseless_; }

 private:
  std::map<std::string, DeviceCosts> devices_;
  size_t senseless_ = 0;
};

// Everything a measurement stands and falls with: the chip, its driver, the plugin and its build,
// and for the CPU the threads that work for it.
std::string CalibrationKey(const Inventory& inventory, const InventoryDevice& device,
                           uint32_t threads);

}  // namespace trine

#endif  // TRINE_RUNTIME_PLACEMENT_CALIBRATION_H_
