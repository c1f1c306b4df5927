// The seam between detection and the operating system: one platform_*.cc is built.
//
// These describe the running machine; a fake root never comes here. Linux is tested. macOS and
// Windows answer with what their documented interfaces can tell and are not tested.

#ifndef TRINE_DETECT_PLATFORM_H_
#define TRINE_DETECT_PLATFORM_H_

#include <vector>

#include "detect/cpu.h"
#include "detect/gpu.h"
#include "detect/memory.h"
#include "detect/notes.h"

namespace trine::detect {

ProcessorInfo HostProcessor(Notes* notes);
CpuInfo HostCpu(Notes* notes);
MemoryInfo HostMemory(Notes* notes);
std::vector<GpuInfo> HostGpus(Notes* notes);

}  // namespace trine::detect

#endif  // TRINE_DETECT_PLATFORM_H_
