// Windows: uses Win32 calls and CPUID. Not tested: cross-compiled, never run by this project.

#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <string>

#include "detect/cpu/x86_features.h"
#include "detect/platform/platform.h"

namespace trine::detect {
namespace {

int CountBits(KAFFINITY mask) { return std::popcount(static_cast<uint64_t>(mask)); }

CacheType ToCacheType(PROCESSOR_CACHE_TYPE type) {
  if (type == CacheData) return CacheType::kData;
  return type == CacheInstruction ? CacheType::kInstruction : CacheType::kUnified;
}

// Adds one of the variable-sized records that GetLogicalProcessorInformationEx returns.
void AddRecord(const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX& record, Topology* topology,
               CacheCollector* caches) {
  switch (record.Relationship) {
    case RelationProcessorPackage:
      ++topology->packages;
      break;
    case RelationProcessorCore: {
      // A core is in one group only.
      const int threads = CountBits(record.Processor.GroupMask[0].Mask);
      ++topology->cores;
      topology->threads += threads;
      topology->threads_per_core = std::max(topology->threads_per_core, threads);
      break;
    }
    case RelationCache: {
      CacheInfo cache;
      cache.level = record.Cache.Level;
      cache.type = ToCacheType(record.Cache.Type);
      cache.size_bytes = record.Cache.CacheSize;
      cache.line_bytes = record.Cache.LineSize;
      cache.shared_by_threads = CountBits(record.Cache.GroupMask.Mask);
      if (cache.level >= 1 && cache.level <= 5 && cache.size_bytes > 0) caches->Add(cache);
      break;
    }
    case RelationNumaNode: {
      NumaNode node;
      node.id = static_cast<int>(record.NumaNode.NodeNumber);
      const uint64_t mask = record.NumaNode.GroupMask.Mask;
      for (int bit = 0; bit < 64; ++bit) {
        if (mask >> bit & 1u) node.cpus.push_back(record.NumaNode.GroupMask.Group * 64 + bit);
      }
      topology->numa_nodes.push_back(node);
      break;
    }
    default:
      break;
  }
}

Topology ReadHostTopology(Notes* notes) {
  Topology topology;
  DWORD size = 0;
  GetLogicalProcessorInformationEx(RelationAll, nullptr, &size);
  // A buffer of max_align_t is aligned for the records in it.
  const auto buffer = std::make_unique<std::max_align_t[]>(size / sizeof(std::max_align_t) + 1);
  auto* bytes = reinterpret_cast<std::byte*>(buffer.get());
  auto* first = reinterpret_cast<SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX*>(bytes);
  if (size == 0 || !GetLogicalProcessorInformationEx(RelationAll, first, &size)) {
    AddNote(notes, "topology: Windows did not describe its processors");
    return topology;
  }
  topology.source = "win32";
  CacheCollector caches;
  for (DWORD at = 0; at < size;) {
    const auto* record =
        reinterpret_cast<const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX*>(bytes + at);
    if (record->Size == 0) break;
    AddRecord(*record, &topology, &caches);
    at += record->Size;
  }
  topology.caches = caches.Take();
  for (int cpu = 0; cpu < topology.threads; ++cpu) topology.cpus.push_back(cpu);
  return topology;
}

}  // namespace

ProcessorInfo HostProcessor(Notes* notes) {
  AddNote(notes, "cpu: detection on Windows is untested");
  ProcessorInfo processor;
  if (const auto source = HostCpuid()) {
    X86Cpu x86 = DecodeX86(source.get());
    processor.arch = "x86-64";
    processor.vendor = x86.vendor;
    processor.model = x86.model;
    processor.features = x86.features;
    processor.simd_level = x86.simd_level;
  } else {
    AddNote(notes, "cpu: only x86-64 processors are described on Windows");
  }
  return processor;
}

CpuInfo HostCpu(Notes* notes) {
  CpuInfo cpu{HostProcessor(notes), {}, {}, {}, {}};
  cpu.topology = ReadHostTopology(notes);
  cpu.usable_cpus = cpu.topology.cpus;
  return cpu;
}

MemoryInfo HostMemory(Notes* notes) {
  MemoryInfo memory;
  MEMORYSTATUSEX status = {};
  status.dwLength = sizeof(status);
  if (!GlobalMemoryStatusEx(&status)) {
    AddNote(notes, "memory: Windows did not say how much there is");
    return memory;
  }
  memory.physical_bytes = memory.total_bytes = status.ullTotalPhys;
  memory.available_bytes = status.ullAvailPhys;
  return memory;
}

std::vector<GpuInfo> HostGpus(Notes* notes) {
  AddNote(notes, "gpu: not detected on Windows; a backend finds them when it is loaded");
  return {};
}

}  // namespace trine::detect
