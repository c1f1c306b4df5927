// The CPU as a device: its description, its kernels and its buffers, which are plain memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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
  bool exact;                         // the kernels passed their self-test
  trine::cpu_kernels::Caches caches;  // the caches of one core
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

// Chooses the kernels for this processor and environment, and tests them. Logs a failed self-test.
trine_backend MakeBackend(const trine_host* host);

// Describes the CPU: its memory, its level, and whether it is exact.
trine_device_info DescribeDevice(const trine_backend& backend);

// The functions of the plugin's table. A plan is a checked graph bound to memory, run synchronously
// by the host's thread team in one parallel region, with barriers where its ops depend on each
// other. LayoutList offers the order in which the kernels read their weights best.
trine_status OpQuery(trine_device* device, const trine_graph* graph, uint32_t op,
                     const int64_t* params, trine_op_support* out, trine_error* err);
trine_status PlanQuery(trine_device* device, const trine_graph* graph, trine_plan_info* out,
                       trine_error* err);
trine_status PlanCreate(trine_device* device, const trine_plan_desc* desc, trine_plan** out,
                        trine_error* err);
trine_status PlanRun(trine_plan* plan, const trine_run_args* args, trine_error* err);
void PlanDestroy(trine_plan* plan);

// Returns "" if the op can read all its packed tensors (or has none), else why it can't.
std::string WhyNotInLayout(const cpu_kernels::KernelTable& kernels, const sdk::Graph& graph,
                           size_t op);

// Turns the view of a packed tensor into a packed view, as the kernels expect it.
void SetPacked(const cpu_kernels::KernelTable& kernels, reference::View* view);

// Implement layout_list and layout_convert of the plugin's table.
trine_status LayoutList(trine_device* device, const trine_graph* graph, uint32_t tensor,
                        trine_layout_list* out, trine_error* err);
trine_status LayoutConvert(trine_device* device, const trine_layout_convert_args* args,
                           trine_error* err);

}  // namespace trine::cpu
