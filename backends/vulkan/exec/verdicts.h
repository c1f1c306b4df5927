// Remembers the results of running a device: all of them in the process, good ones also in a file.
// They are remembered because tests take a while, and devices are described often. Imports that are
// not settled are remembered as such and tried again without another self-test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/vulkan/exec/import_trial.h"
#include "backends/vulkan/open_device.h"

namespace trine::vulkan {

struct Verdict {
  std::string failure;  // the op that differed in the self-test; "" if every bit was equal
  ImportTrial imports;
};

// Everything that a verdict depends on: chip, driver, kernel, shaders, this code, and the options.
using VerdictKey = std::vector<uint8_t>;
VerdictKey VerdictKeyOf(const DeviceCaps& caps, const DeviceOptions& options);

// Returns the verdict from the process or from the file `path` ("": no file), or nullopt. A file
// that is damaged or has another key is treated as absent.
std::optional<Verdict> RecallVerdict(const VerdictKey& key, const std::string& path);

// Remembers a verdict. A failure is not written to the file, so the next process tests again. Keeps
// the kVerdictFiles newest files of a device (DefaultVerdictPath).
constexpr size_t kVerdictFiles = 16;
void RememberVerdict(const VerdictKey& key, const std::string& path, const Verdict& verdict);

// Clears what the process remembers, for tests.
void ForgetVerdicts();

// Returns a path for each key, so that a device used in two ways is not tested again at each
// change.
std::string DefaultVerdictPath(const DeviceCaps& caps, const VerdictKey& key);

}  // namespace trine::vulkan
