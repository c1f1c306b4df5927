#include "detect/machine.h"

#include <exception>

#include "detect/platform/platform.h"
#include "detect/text.h"

namespace trine::detect {
namespace {

// Runs one step of detection. Nothing below throws on purpose, but the standard library may (out of
// memory, a file system that vanishes); an exception costs the answer of this step only.
template <typename Stage>
void Guarded(const char* what, Notes* notes, Stage stage) noexcept {
  try {
    try {
      stage();
    } catch (const std::exception& error) {
      AddNote(notes, std::string(what) + ": detection stopped: " + CleanText(error.what()));
    } catch (...) {
      AddNote(notes, std::string(what) + ": detection stopped");
    }
  } catch (...) {
    // There is no memory even for the note; the defaults stand.
  }
}

void DescribeFolder(const FileRoot& root, Machine* machine) {
  Notes* notes = &machine->notes;
  if (!root.Exists()) {
    AddNote(notes, "root: the folder to describe does not exist or is not a folder");
    return;
  }
  Guarded("cpu", notes, [&] { machine->cpu = ReadCpu(root, notes); });
  Guarded("memory", notes, [&] { machine->memory = ReadMemory(root, notes); });
  Guarded("gpu", notes, [&] { machine->gpus = ReadGpus(root, notes); });
}

void DescribeHost(Machine* machine) {
  Notes* notes = &machine->notes;
  Guarded("cpu", notes, [&] { machine->cpu = HostCpu(notes); });
  Guarded("memory", notes, [&] { machine->memory = HostMemory(notes); });
  Guarded("gpu", notes, [&] { machine->gpus = HostGpus(notes); });
}

}  // namespace

Machine DetectMachine(const DetectOptions& options) noexcept {
  Machine machine;
  Guarded("machine", &machine.notes, [&] {
    const FileRoot root(options.root);
    if (root.is_host()) {
      DescribeHost(&machine);
    } else {
      DescribeFolder(root, &machine);
    }
  });
  machine.tier = SummariseTier(machine.gpus);
  return machine;
}

ProcessorInfo DetectProcessor() noexcept {
  ProcessorInfo processor;
  Notes notes;
  Guarded("cpu", &notes, [&] { processor = HostProcessor(&notes); });
  return processor;
}

const char* ComputeTierName(ComputeTier tier) {
  switch (tier) {
    case ComputeTier::kCpuIgpu:
      return "cpu+igpu";
    case ComputeTier::kCpuDgpu:
      return "cpu+dgpu";
    case ComputeTier::kCpuIgpuDgpu:
      return "cpu+igpu+dgpu";
    case ComputeTier::kCpuOnly:
      break;
  }
  return "cpu-only";
}

ComputeTier SummariseTier(const std::vector<GpuInfo>& gpus) {
  bool igpu = false, dgpu = false;
  for (const GpuInfo& gpu : gpus) {
    if (!gpu.counted) continue;
    igpu = igpu || gpu.kind == GpuKind::kIntegrated;
    dgpu = dgpu || gpu.kind == GpuKind::kDiscrete;
  }
  if (igpu && dgpu) return ComputeTier::kCpuIgpuDgpu;
  if (dgpu) return ComputeTier::kCpuDgpu;
  return igpu ? ComputeTier::kCpuIgpu : ComputeTier::kCpuOnly;
}

}  // namespace trine::detect
