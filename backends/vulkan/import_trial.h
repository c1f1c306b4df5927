// Which memory of the host's a device takes as its own: found by trying, since drivers differ and
// do not say. Some refuse pages with a file behind them, some pages that can't be written.
#ifndef TRINE_BACKENDS_VULKAN_IMPORT_TRIAL_H_
#define TRINE_BACKENDS_VULKAN_IMPORT_TRIAL_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "backends/vulkan/open_device.h"

namespace trine::vulkan {

// Of one kind of memory.
struct KindTrial {
  enum Outcome : uint8_t { kUntried, kTaken, kRefused };
  Outcome outcome = kUntried;
  std::string reason;  // of a refusal, in a few words, as trine_device_info has little room
};

struct ImportTrial {
  KindTrial memory;  // of the process's own
  KindTrial files;   // mapped, to be read only

  const KindTrial& Of(bool read_only) const { return read_only ? files : memory; }
  // Nothing is left to be tried.
  bool settled() const {
    return memory.outcome != KindTrial::kUntried && files.outcome != KindTrial::kUntried;
  }
  // TRINE_IMPORTS_*. There is one TRIED for both kinds: 0 while one of them is not.
  uint32_t Flags() const;
  // What was refused and why; "" where nothing was.
  std::string Refusal() const;
};

// A copy of a few pages takes no longer on any device that will ever end it.
constexpr std::chrono::milliseconds kImportTrialTimeout{10'000};

// Imports some pages of each kind that is untried and has the device read them, in no more time
// than the options and kImportTrialTimeout allow. `compare`: what it read must be what is there;
// else, of a device that computes wrong anyway, it is enough that it could.
//
// A kind stays untried where memory was short, where there were no pages to try with, and where the
// device was lost to the other kind. That one is refused: it would cost the next process as much.
void TryImports(OpenDevice& open, bool compare, ImportTrial* trial);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_IMPORT_TRIAL_H_
