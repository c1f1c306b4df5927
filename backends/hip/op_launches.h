// Turns groups of ops into launches of kernels, for the dimensions and addresses of a run. Calls no
// driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/common/fusion.h"
#include "backends/common/packed_layout.h"
#include "backends/hip/found_devices.h"
#include "backends/hip/group_runs.h"
#include "kernels/hip/attention/attention.h"
#include "kernels/hip/gemv/gemv.h"
#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/ops/ops.h"
#include "kernels/hip/weights/product.h"
#include "trine/backend_sdk.h"

namespace trine::hip {

// Tensors and the host's spans begin at multiples of this.
inline constexpr uint64_t kAlignment = 256;

// The layout of packed weights. The low half of its id is the version of packed_rows.h.
inline constexpr backends::PackedLayout kPackedLayout(kPluginName, sdk::OwnLayout(kPluginName, 1),
                                                      /*gathers=*/true);

// The memory that launches need in addition to the graph's own: for products, for attention, and
// for the second place of quantised activations (GroupRun). The ops of a graph use it in turn.
struct LaunchScratch {
  uint64_t product_bytes = 0;
  uint64_t attention_bytes = 0;
  uint64_t second_bytes = 0;

  uint64_t Bytes() const { return product_bytes + attention_bytes + second_bytes; }
};

// Returns the most that the ops of a graph need.
LaunchScratch ScratchOf(const DeviceShape& shape, const sdk::Graph& graph);

// Returns "" or why an op, which has passed sdk::CheckOp, can't run.
std::string WhyNotOp(const sdk::Graph& graph, size_t index);

// Makes the launches of a run.
class OpLaunches {
 public:
  // places[t] is where tensor t begins; null: its slot is empty. All arguments must outlive this
  // object.
  OpLaunches(const DeviceShape& shape, const sdk::Graph& graph, const LaunchScratch& sizes,
             std::byte* scratch, const std::vector<std::byte*>& places, const int64_t* params);

  // Appends the launches of a run of groups. Runs must be added in order, because a run may use the
  // activations that an earlier one quantised.
  void Add(std::span<const OpGroup> groups, const GroupRun& run,
           std::vector<Launch>* launches) const;

 private:
  const sdk::Op& OpAt(const OpGroup& group, uint32_t i) const {
    return graph_.ops[group.first + i];
  }
  // Returns a tensor without data for an absent optional input.
  Tensor In(const sdk::Op& op, size_t i) const;
  Tensor Out(const sdk::Op& op, size_t i) const { return TensorAt(op.out[i]); }
  Tensor TensorAt(uint32_t index) const;
  QuantizedColumns Quantized(int64_t values, int64_t columns, uint32_t place = 0) const;

  // The tensors of one op, at their places.
  struct Placed {
    const OpLaunches& launches;
    const sdk::Op& op;

    Tensor In(size_t i) const { return launches.In(op, i); }
    Tensor Out(size_t i) const { return launches.Out(op, i); }
  };

  void AddGroup(const OpGroup& group, const GroupRun& run, std::vector<Launch>* launches) const;
  void AddProducts(std::span<const OpGroup> groups, const GroupRun& run,
                   std::vector<Launch>* launches) const;
  Product MakeProduct(const OpGroup& group, uint32_t place) const;
  MoeRoute MakeRoute(const sdk::Op& op) const;
  AttentionTensors MakeAttention(const OpGroup& group) const;
  // `before` is the rotation and the stores that the same launch does before attention, or null.
  void AddAttention(const OpGroup& group, const RotateStore* before,
                    std::vector<Launch>* launches) const;
  void AddAttended(std::span<const OpGroup> groups, const GroupRun& run,
                   std::vector<Launch>* launches) const;
  RotateStore MakeRotateStore(const OpGroup& group) const;
  // `norms`: the groups of the norms of what `work` rotates.
  void SetNorms(std::span<const OpGroup> norms, const OpGroup& rotation, RotateStore* work) const;
  void AddRotateStore(const OpGroup& group, std::vector<Launch>* launches) const;
  Norm MakeNorm(const OpGroup& group, bool added) const;
  Launch MakeGlu(const OpGroup& group) const;
  Launch MakeSimple(const sdk::Op& op) const;

  const DeviceShape& shape_;
  const sdk::Graph& graph_;
  const LaunchScratch& sizes_;
  std::byte* scratch_;
  const std::vector<std::byte*>& places_;
  const int64_t* params_;
  std::vector<bool> written_;  // for each slot: whether an op writes there
};

}  // namespace trine::hip
