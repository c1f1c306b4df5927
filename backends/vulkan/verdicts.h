// What was found out about a device by running it, remembered: by the process, and where it was
// good, in a file. Finding out takes a while, and devices are described often. Imports that are not
// settled are remembered as such, to be tried again: they don't cost another self-test.
#ifndef TRINE_BACKENDS_VULKAN_VERDICTS_H_
#define TRINE_BACKENDS_VULKAN_VERDICTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/vulkan/import_trial.h"
#include "backends/vulkan/open_device.h"

namespace trine::vulkan {

struct Verdict {
  std::string failure;  // "" where the self-test found every bit equal, else the op that differed
  ImportTrial imports;
};

// What a verdict hangs on: chip, driver, kernel, shaders, this code, the way the device is used.
using VerdictKey = std::vector<uint8_t>;
VerdictKey VerdictKeyOf(const DeviceCaps& caps, const DeviceOptions& options);

// `path`: of the file; "" for none. A file that is damaged, or of another key, counts as absent.
std::optional<Verdict> RecallVerdict(const VerdictKey& key, const std::string& path);

// A failure is not written: the next process tests again. Of the files of one device
// (DefaultVerdictPath) the kVerdictFiles newest are kept.
constexpr size_t kVerdictFiles = 16;
void RememberVerdict(const VerdictKey& key, const std::string& path, const Verdict& verdict);

// What the process remembers, for tests.
void ForgetVerdicts();

// A file for each key, so that one device used in two ways is not found out anew at each change.
std::string DefaultVerdictPath(const DeviceCaps& caps, const VerdictKey& key);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_VERDICTS_H_
