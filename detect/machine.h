// DetectMachine: everything the runtime knows about the machine before it loads a backend.
//
// Detection never fails. What cannot be read stays at "unknown" (zero, empty) and is explained in
// Machine::notes; a machine about which nothing is known is a cpu-only one. The functions keep no
// state, so any number of threads may call them.

#ifndef TRINE_DETECT_MACHINE_H_
#define TRINE_DETECT_MACHINE_H_

#include <string>
#include <vector>

#include "detect/cpu.h"
#include "detect/gpu.h"
#include "detect/memory.h"
#include "detect/notes.h"

namespace trine::detect {

// Which kinds of processor there are to share a model between.
enum class ComputeTier { kCpuOnly, kCpuIgpu, kCpuDgpu, kCpuIgpuDgpu };

struct DetectOptions {
  // "" or "/": the running machine. Else a folder with proc/ and sys/ of the machine to describe;
  // nothing outside it is looked at, CPUID included.
  std::string root;
};

struct Machine {
  CpuInfo cpu;
  MemoryInfo memory;
  std::vector<GpuInfo> gpus;  // All display devices found, counted or not.
  ComputeTier tier = ComputeTier::kCpuOnly;
  Notes notes;
};

// On the running machine this asks for permission to use AMX, where the processor has it; the
// process keeps the permission.
Machine DetectMachine(const DetectOptions& options = {}) noexcept;

// Only what the running processor is and can do, as Machine::cpu has it: no file is read for each
// core. Asks for AMX likewise.
ProcessorInfo DetectProcessor() noexcept;

// "cpu-only", "cpu+igpu", "cpu+dgpu", "cpu+igpu+dgpu".
const char* ComputeTierName(ComputeTier tier);

// By the GPUs that count.
ComputeTier SummariseTier(const std::vector<GpuInfo>& gpus);

}  // namespace trine::detect

#endif  // TRINE_DETECT_MACHINE_H_
