// Finds out by a trial which memory of the host a device can import, because drivers differ and do
// not say. Some refuse pages of mapped files, some refuse pages that can't be written.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "backends/vulkan/open_device.h"

namespace trine::vulkan {

// The trial of one kind of memory.
struct KindTrial {
  enum Outcome : uint8_t { kUntried, kTaken, kRefused };
  Outcome outcome = kUntried;
  std::string reason;  // why it was refused, in a few words: trine_device_info has little room
};

struct ImportTrial {
  KindTrial memory;  // the process's own memory
  KindTrial files;   // files, mapped read-only

  const KindTrial& Of(bool read_only) const { return read_only ? files : memory; }
  // Returns true when both kinds were tried.
  bool settled() const {
    return memory.outcome != KindTrial::kUntried && files.outcome != KindTrial::kUntried;
  }
  // Returns TRINE_IMPORTS_*. The TRIED flag stands for both kinds, so the flags are 0 until both
  // were tried.
  uint32_t Flags() const;
  // Returns what was refused and why, or "" if nothing was.
  std::string Refusal() const;
};

// Limits the trial. A device that ever finishes takes less time to copy a few pages.
constexpr std::chrono::milliseconds kImportTrialTimeout{10'000};

// Imports some pages of each untried kind and lets the device read them, within the options'
// timeout and kImportTrialTimeout. With `compare`, the device must read the pages' contents
// correctly. Without it, for a device that computes wrong anyway, it is enough that the read ends.
//
// A kind stays untried if memory was short, if there were no pages to try with, or if the trial of
// the other kind lost the device. The kind that lost the device is refused, because it would cost
// the next process the device too.
void TryImports(OpenDevice& open, bool compare, ImportTrial* trial);

}  // namespace trine::vulkan
