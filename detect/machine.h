// DetectMachine finds out everything that the runtime knows about the machine before it loads a
// backend.
//
// Detection never fails. A fact that can't be read stays "unknown" (zero, empty) and is explained
// in Machine::notes. If nothing is known about a machine, its tier is cpu-only. The functions keep
// no state, so any number of threads may call them.
#pragma once

#include <string>
#include <vector>

#include "detect/cpu/cpu.h"
#include "detect/file_root.h"
#include "detect/gpu/gpu.h"
#include "detect/memory.h"

namespace trine::detect {

// The kinds of processor that a model can be shared between.
enum class ComputeTier { kCpuOnly, kCpuIgpu, kCpuDgpu, kCpuIgpuDgpu };

struct DetectOptions {
  // "" or "/": the running machine. Otherwise a folder with the proc/ and sys/ of the machine to
  // describe; nothing outside it is read and CPUID is not executed.
  std::string root;
};

struct Machine {
  CpuInfo cpu;
  MemoryInfo memory;
  std::vector<GpuInfo> gpus;  // All display devices, even those that do not count for the tier.
  ComputeTier tier = ComputeTier::kCpuOnly;
  Notes notes;
};

// Describes a machine. On the running machine this requests permission to use AMX, if the processor
// has it; the process keeps the permission.
Machine DetectMachine(const DetectOptions& options = {}) noexcept;

// Returns only the ProcessorInfo part of Machine::cpu, for the running machine. Reads fewer files
// than DetectMachine: none for each core. Requests permission to use AMX as DetectMachine does.
ProcessorInfo DetectProcessor() noexcept;

// Returns "cpu-only", "cpu+igpu", "cpu+dgpu" or "cpu+igpu+dgpu".
const char* ComputeTierName(ComputeTier tier);

// Returns the tier of a machine with these GPUs. Only GPUs that count matter.
ComputeTier SummariseTier(const std::vector<GpuInfo>& gpus);

}  // namespace trine::detect
