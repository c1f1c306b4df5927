// The CPU as a device: its facts, its kernels and its buffers, which are plain memory.
#ifndef TRINE_BACKENDS_CPU_DEVICE_H_
#define TRINE_BACKENDS_CPU_DEVICE_H_

#include <memory>

#include "backends/cpu/kernel_choice.h"
#include "backends/cpu/way_trials.h"
#include "kernels/cpu/tuning.h"
#include "trine/backend_sdk.h"

// The ABI's opaque handles, as this plugin has them.
struct trine_backend {
  const trine_host* host;
  trine::cpu::KernelChoice choice;
  bool exact;                         // the kernels passed their self-test
  trine::cpu_kernels::Caches caches;  // of a core
  std::unique_ptr<trine::cpu::WayTrials> ways;

  uint32_t Support() const { return exact ? TRINE_SUPPORT_EXACT : TRINE_SUPPORT_FAST; }
};

struct trine_device {
  trine_backend* backend;
};

struct trine_buffer : trine::sdk::HostBuffer {};

struct trine_timeline : trine::sdk::Timeline {
  using Timeline::Timeline;
};

namespace trine::cpu {

using Memory = sdk::HostMemory<trine_buffer, trine_timeline>;
using Timelines = sdk::TimelineCalls<trine_timeline>;

// The kernels for this processor and environment; a self-test that fails is logged.
trine_backend MakeBackend(const trine_host* host);

trine_device_info DescribeDevice(const trine_backend& backend);

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_DEVICE_H_
