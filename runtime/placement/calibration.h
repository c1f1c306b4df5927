// Keeps measured costs of devices in a file of the user's between runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/cost/device_costs.h"
#include "dispatch/devices/inventory.h"

namespace trine {

class Calibration {
 public:
  // Returns the value of TRINE_CALIBRATION if it is set ("off" gives ""). Otherwise returns
  // trine/calibration.json in the user's cache folder, or "" if there is no such folder.
  static std::string DefaultPath();

  // Reads the file. Returns an empty calibration if there is no file or no path, and DATA_LOSS,
  // naming the path, if the file is no calibration.
  static absl::StatusOr<Calibration> Read(const std::string& path);
  // Replaces the file in one step. Makes its folder if there is none.
  absl::Status Write(const std::string& path) const;
  // Adds these entries to the entries that the file has by then, since other processes may have
  // added some. Replaces a file that is damaged or of another version. Concurrent calls wait for
  // each other by a lock next to the file.
  absl::Status AddTo(const std::string& path) const;
  // Checks whether the file could be written, without touching it.
  static absl::Status CheckWritable(const std::string& path);

  // Returns the costs for a CalibrationKey; null if the device was not measured with this build of
  // its plugin and this driver.
  const MeasuredCosts* Find(const std::string& key) const;
  void Set(const std::string& key, DeviceCosts costs, CostTrust trust = {}) {
    devices_[key] = {std::move(costs), std::move(trust)};
  }
  size_t size() const { return devices_.size(); }
  // Returns the number of the file's entries that were skipped because they make no sense.
  size_t senseless() const { return senseless_; }

 private:
  std::map<std::string, MeasuredCosts> devices_;
  size_t senseless_ = 0;
};

// Returns a text that names everything that a measurement depends on: the chip, its driver, the
// plugin and its build, and for the CPU the number of threads.
std::string CalibrationKey(const Inventory& inventory, const InventoryDevice& device,
                           uint32_t threads);

}  // namespace trine
