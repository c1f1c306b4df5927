// The interface between detection and the operating system. The build takes one platform_*.cc.
//
// These functions describe the running machine and are never called for a fake root. Linux is
// tested. macOS and Windows report only facts from documented interfaces, and are not tested.
#pragma once

#include <vector>

#include "detect/cpu/cpu.h"
#include "detect/file_root.h"
#include "detect/gpu/gpu.h"
#include "detect/memory.h"

namespace trine::detect {

ProcessorInfo HostProcessor(Notes* notes);
CpuInfo HostCpu(Notes* notes);
MemoryInfo HostMemory(Notes* notes);
std::vector<GpuInfo> HostGpus(Notes* notes);

}  // namespace trine::detect
