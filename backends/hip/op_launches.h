// Groups of ops as launches of kernels, at a run's dimensions and places. No device is asked.
#ifndef TRINE_BACKENDS_HIP_OP_LAUNCHES_H_
#define TRINE_BACKENDS_HIP_OP_LAUNCHES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/common/fusion.h"
#include "backends/hip/group_runs.h"
#include "kernels/hip/attention.h"
#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/norm.h"
#include "kernels/hip/product.h"
#include "kernels/hip/rotate_store.h"
#include "trine/backend_sdk.h"

namespace trine::hip {

// What tensors and the host's spans begin at multiples of.
inline constexpr uint64_t kAlignment = 256;

// Memory that launches need besides the graph's own: a part for products, one for attention, and
// the second place of quantised activations (GroupRun). Each is used by one op after the other.
struct LaunchScratch {
  uint64_t product_bytes = 0;
  uint64_t attention_bytes = 0;
  uint64_t second_bytes = 0;

  uint64_t Bytes() const { return product_bytes + attention_bytes + second_bytes; }
};

// What the ops of a graph need at the most.
LaunchScratch ScratchOf(const DeviceShape& shape, const sdk::Graph& graph);

// "" or why an op that keeps its rules can't run.
std::string WhyNotOp(const DeviceShape& shape, const sdk::Graph& graph, size_t index);

class OpLaunches {
 public:
  // Places are by tensor, null where a tensor's slot is empty. What is given outlives this.
  OpLaunches(const DeviceShape& shape, const sdk::Graph& graph, const LaunchScratch& sizes,
             std::byte* scratch, const std::vector<std::byte*>& places, const int64_t* params);

  // Appends those of a run of groups, one after the other and in order: what one has quantised
  // others find.
  void Add(std::span<const OpGroup> groups, const GroupRun& run,
           std::vector<Launch>* launches) const;

 private:
  const sdk::Op& OpAt(const OpGroup& group, uint32_t i) const {
    return graph_.ops[group.first + i];
  }
  // An absent optional input has no data.
  Tensor In(const sdk::Op& op, size_t i) const;
  Tensor Out(const sdk::Op& op, size_t i) const { return TensorAt(op.out[i]); }
  Tensor TensorAt(uint32_t index) const;
  QuantizedColumns Quantized(int64_t values, int64_t columns, uint32_t place = 0) const;

  // The tensors of one op, where they are.
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
  AttentionTensors MakeAttention(const OpGroup& group) const;
  // `before`: null, or what is done along.
  void AddAttention(const OpGroup& group, const RotateStore* before,
                    std::vector<Launch>* launches) const;
  void AddAttended(std::span<const OpGroup> groups, std::vector<Launch>* launches) const;
  RotateStore MakeRotateStore(const OpGroup& group) const;
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
  std::vector<bool> written_;  // by slot: an op writes something there
};

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_OP_LAUNCHES_H_
