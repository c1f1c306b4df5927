// The CPU as a device: its facts and its buffers, which are plain memory.
#ifndef TRINE_BACKENDS_CPU_DEVICE_H_
#define TRINE_BACKENDS_CPU_DEVICE_H_

#include "trine/backend_sdk.h"

// The ABI's opaque handles, as this plugin has them.
struct trine_backend {
  const trine_host* host;
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

trine_device_info DescribeDevice();

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_DEVICE_H_
