// Which device a failure is about. Statuses of calls into a device carry its name, whoever hands
// them on, so that who can do without the device knows which one it was.
#ifndef TRINE_PLUGINS_DEVICE_FAULT_H_
#define TRINE_PLUGINS_DEVICE_FAULT_H_

#include <string>

#include "absl/status/status.h"

namespace trine {

// The status with the device's name. OK, and a status that has one, stay as they are; so does any
// where `device` is "".
absl::Status OnDevice(const std::string& device, absl::Status status);

// The name; "" where there is none, or where the device only refused: what it can't do it can't do
// the next time either, and it is none the worse.
std::string FaultyDevice(const absl::Status& status);

}  // namespace trine

#endif  // TRINE_PLUGINS_DEVICE_FAULT_H_
