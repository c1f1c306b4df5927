// Turns ops into runs of shaders over ranges of tensors. Calls no driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/vulkan/ops/op_operands.h"
#include "trine/backend_sdk.h"

namespace trine::vulkan {

// The memory that runs need in addition to the graph's own: a part for products, then one for
// attention. The ops of a graph use each part in turn.
struct RunScratch {
  uint64_t product_bytes = 0;
  uint64_t attention_bytes = 0;

  uint64_t Bytes() const { return product_bytes + attention_bytes; }
};

// Makes the runs of a graph's groups of ops. Groups must be added in order, because a group may use
// the activations that an earlier one quantised.
class OpRuns {
 public:
  // All arguments must outlive this object.
  OpRuns(const RunChoices& choices, const sdk::Graph& graph, const RunScratch& scratch,
         const Misalignment& misaligned)
      : choices_(choices), graph_(graph), scratch_(scratch), misaligned_(misaligned) {}

  // Appends the runs of a group at these parameters. Returns "", or why it can't be done.
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

// Returns the most scratch that any op of a graph needs.
RunScratch ScratchOf(const RunChoices& choices, const sdk::Graph& graph);

// Returns why a valid op can't run on the device, or "" if it can.
std::string WhyNotOp(const RunChoices& choices, const sdk::Graph& graph, size_t index);

}  // namespace trine::vulkan
