// The CPU as a device: its description, its kernels and its buffers, which are plain memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/common/plugin.h"
#include "backends/cpu/way_trials.h"
#include "detect/cpu/cpu.h"
#include "detect/cpu/topology.h"
#include "kernels/cpu/levels/kernel_table.h"
#include "kernels/cpu/levels/levels.h"
#include "trine/backend_sdk.h"

namespace trine::cpu {

// Chooses the level of kernels/cpu that the device runs (the best that the processor has, or the
// one that TRINE_CPU_ISA names) and the cache sizes it is told.
struct KernelChoice {
  const cpu_kernels::Level* level = nullptr;  // null: none can run; `reason` says why
  std::string reason;
};

// `wanted`: a level's name; null or "": the best.
KernelChoice ChooseKernels(const std::vector<detect::SimdFeature>& features, const char* wanted);

// Returns the cache sizes for the kernels. A size that was not detected stays the kernels' guess.
cpu_kernels::Caches CachesOf(const detect::CoreCaches& detected);

// Returns "" if the level's kernels pass their self-test, else the operation that failed. Runs the
// test once per process and level. Any thread may call.
std::string SelfTestFailure(const cpu_kernels::Level& level);

}  // namespace trine::cpu

// The ABI's opaque handles.
struct trine_backend {
  const trine_host* host;
  trine::cpu::KernelChoice choice;
  std::string failure;                // the operation that failed the self-test; "": none did
  trine::cpu_kernels::Caches caches;  // the caches of one core
  std::unique_ptr<trine::cpu::WayTrials> ways;

  bool exact() const { return failure.empty(); }
  uint32_t Support() const { return exact() ? TRINE_SUPPORT_EXACT : TRINE_SUPPORT_FAST; }
};

struct trine_device {
  trine_backend* backend;
};

struct trine_buffer : trine::sdk::HostBuffer {};

namespace trine::cpu {

using Memory = sdk::HostMemory<trine_buffer, trine_timeline>;

// Chooses the kernels for this processor and environment, and tests them. Logs a failed self-test.
trine_backend MakeBackend(const trine_host* host);

// Describes the CPU: its memory, its level, and whether it is exact.
trine_device_info DescribeDevice(const trine_backend& backend);

// The functions of the plugin's table for plans. A plan is a checked graph bound to memory, run
// synchronously by the host's thread team in one parallel region, with barriers where its ops
// depend on each other.
struct PlanCalls {
  static backends::Call<&trine_plugin::op_query> QueryOp;
  static backends::Call<&trine_plugin::plan_query> Query;
  static backends::Call<&trine_plugin::plan_create> Create;
  static backends::Call<&trine_plugin::plan_run> Run;
  static backends::Call<&trine_plugin::plan_destroy> Destroy;
};

// Returns "" if the op can read all its packed tensors (or has none), else why it can't.
std::string WhyNotInLayout(const cpu_kernels::KernelTable& kernels, const sdk::Graph& graph,
                           size_t op);

// Turns the view of a packed tensor into a packed view, as the kernels expect it.
void SetPacked(const cpu_kernels::KernelTable& kernels, reference::View* view);

// The functions of the plugin's table for layouts. The one layout is the order in which the kernels
// read their weights best.
struct LayoutCalls {
  static backends::Call<&trine_plugin::layout_list> List;
  static backends::Call<&trine_plugin::layout_convert> Convert;
};

}  // namespace trine::cpu
