// Remembers in files which devices have passed the host's self-test, so that the test costs time
// once. Failures are not remembered: the next process tests the device again.
#pragma once

#include <cstdint>
#include <string>

#include "trine/backend.h"

namespace trine {

// The tests of one plugin's devices, opened with some options.
class PassedDevices {
 public:
  // Reads the plugin's file. Make this object before the plugin is loaded, so that what is
  // remembered is not a file that came later.
  PassedDevices(const std::string& plugin_path, const std::string& options);

  // How far a device's test came.
  struct Progress {
    int next = 0;  // the number of the first graph that is still to be run
    bool complete = false;
  };
  // Returns how far the device's test came in earlier processes.
  Progress Recall(uint32_t index, const trine_device_info& info) const;
  // Writes the device's file. Ignores errors: the device is tested again.
  void Remember(uint32_t index, const trine_device_info& info, const Progress& progress) const;

 private:
  std::string Key(uint32_t index, const trine_device_info& info) const;
  std::string PathOf(const std::string& key) const;

  std::string folder_;  // "": there is none, or the plugin can't be read
  std::string key_;     // what the tests of all devices depend on
};

}  // namespace trine
