// Remembers in a file that a device has passed the host's self-test, so that the test costs time
// once. Failures are not remembered: the next process tests the device again.
#pragma once

#include <cstdint>
#include <string>

#include "trine/backend.h"

namespace trine {

class PassedTest {
 public:
  // The test of a device that was opened with these options. It counts as long as the plugin's file
  // has the same bytes and the device the same name, architecture and driver.
  PassedTest(const std::string& plugin_path, const std::string& options, const char* plugin,
             uint32_t index, const trine_device_info& info);

  // Returns whether the test was passed and remembered.
  bool Recall() const;
  // Writes the file. Ignores errors: the device is tested again.
  void Remember() const;

 private:
  std::string text_;  // all that the test depends on
  std::string path_;  // "": there is no folder for the file, or the plugin can't be read
};

}  // namespace trine
