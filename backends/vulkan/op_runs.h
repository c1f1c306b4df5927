// Ops as runs of shaders: which ones, over which bytes of which tensors. Pure: no driver is asked.
#ifndef TRINE_BACKENDS_VULKAN_OP_RUNS_H_
#define TRINE_BACKENDS_VULKAN_OP_RUNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backends/common/fusion.h"
#include "backends/vulkan/device_caps.h"
#include "backends/vulkan/tuning.h"
#include "kernels/vulkan/dispatch.h"
#include "kernels/vulkan/products.h"
#include "trine/backend_sdk.h"

namespace trine::vulkan {

using backends::OpGroup;

// What the runs of a device depend on.
struct RunChoices {
  const DeviceCaps* caps = nullptr;
  Tuning tuning;
  ProductTuning products;
};

// What bindings begin at multiples of.
uint64_t BindingAlignment(const DeviceCaps& caps);
// What the host is asked to begin the spans it binds at multiples of.
uint64_t BufferAlignment(const DeviceCaps& caps);

// A run, and what each of its bindings holds.
struct OpRun {
  struct Operand {
    uint32_t tensor = kScratchOperand;  // or the plan's scratch behind its TEMP slots
    uint64_t offset = 0;  // from the last place before the tensor's begin where a binding can be
    uint64_t bytes = 0;
  };
  KernelRun run;
  std::vector<Operand> operands;  // by binding
  uint64_t operations = 0;        // about
  const char* label = nullptr;    // in profiles, valid for ever
};

// Memory that runs need besides the graph's own: a part for products, then one for attention. Each
// is used by one op after the other.
struct RunScratch {
  uint64_t product_bytes = 0;
  uint64_t attention_bytes = 0;

  uint64_t Bytes() const { return product_bytes + attention_bytes; }
};

// By tensor: how far behind a place where a binding can be it begins.
using Misalignment = std::vector<uint32_t>;

// Makes the runs of a graph's groups of ops, one after the other and in order: what one has
// quantised others find.
class OpRuns {
 public:
  // What is given outlives this.
  OpRuns(const RunChoices& choices, const sdk::Graph& graph, const RunScratch& scratch,
         const Misalignment& misaligned)
      : choices_(choices), graph_(graph), scratch_(scratch), misaligned_(misaligned) {}

  // Appends the runs of a group at these parameters. "" or why it can't be done.
  std::string Add(const OpGroup& group, const int64_t* params, std::vector<OpRun>* runs) const;

 private:
  std::string AddUnnamed(const OpGroup& group, const int64_t* params,
                         std::vector<OpRun>* runs) const;
  std::string AddProduct(const OpGroup& group, const int64_t* params,
                         std::vector<OpRun>* runs) const;
  std::string AddGather(size_t index, const int64_t* params, std::vector<OpRun>* runs) const;
  std::string AddAttention(const OpGroup& group, const int64_t* params,
                           std::vector<OpRun>* runs) const;

  const RunChoices& choices_;
  const sdk::Graph& graph_;
  const RunScratch& scratch_;
  const Misalignment& misaligned_;
};

// What the ops of a graph need at the most.
RunScratch ScratchOf(const RunChoices& choices, const sdk::Graph& graph);

// "" or why an op that keeps its rules can't run on the device.
std::string WhyNotOp(const RunChoices& choices, const sdk::Graph& graph, size_t index);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_OP_RUNS_H_
