// Remembers verdicts on devices, because the self-test and the trial of imports take a while and
// devices are described often. The process remembers every verdict; a file keeps those of devices
// that passed. A verdict whose imports are not settled is remembered too: the caller may try the
// imports again without another self-test. Thread-safe.
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
  std::string failure;  // why the device is not exact, such as the op that differed; "": exact
  ImportTrial imports;  // which memory of the host the device can import
};

// Holds everything that a verdict depends on: chip, driver, the operating system's kernel, shaders,
// Trine's version, and the options for imports, tuning and timeouts. For a software device also the
// processor, for which the driver compiles.
using VerdictKey = std::vector<uint8_t>;
VerdictKey VerdictKeyOf(const DeviceCaps& caps, const DeviceOptions& options);

// Returns the verdict from the process or from the file `path` ("": no file), or nullopt. A file
// that is damaged or has another key is treated as absent.
std::optional<Verdict> RecallVerdict(const VerdictKey& key, const std::string& path);

constexpr size_t kVerdictFiles = 16;
// Remembers a verdict, in place of an earlier one of the key. Writes the verdict to the file `path`
// ("": no file) unless it has a failure, so the next process tests a failing device again. Then
// removes all but the newest kVerdictFiles files of the device. Ignores errors of files.
void RememberVerdict(const VerdictKey& key, const std::string& path, const Verdict& verdict);

// Forgets the verdicts of the process, but no file. For tests.
void ForgetVerdicts();

// Returns the path of the verdict's file, or "" if there is no cache folder. Each key has a file of
// its own, so that a device used with two sets of options is not tested again at each change.
std::string DefaultVerdictPath(const DeviceCaps& caps, const VerdictKey& key);

}  // namespace trine::vulkan
