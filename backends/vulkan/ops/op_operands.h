// Describes runs of shaders over ranges of tensors. Operands is the tensors of one op at a run's
// dimensions, as shaders see and bind them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/common/fusion.h"
#include "backends/common/packed_layout.h"
#include "backends/vulkan/device/device_caps.h"
#include "backends/vulkan/device/tuning.h"
#include "kernels/vulkan/runs/dispatch.h"
#include "kernels/vulkan/runs/products.h"
#include "trine/backend_sdk.h"

namespace trine::vulkan {

// The layout of packed weights. The low half of its id is the version of packed_rows.h.
inline constexpr backends::PackedLayout kPackedLayout("vulkan", sdk::OwnLayout("vulkan", 1),
                                                      /*gathers=*/false);

using backends::OpGroup;

// Everything that the runs on a device depend on.
struct RunChoices {
  const DeviceCaps* caps = nullptr;
  Tuning tuning;
  ProductTuning products;
};

// Returns the alignment of the offsets of bindings.
inline uint64_t BindingAlignment(const DeviceCaps& caps) {
  return std::max<uint64_t>(caps.storage_alignment, 16);
}
// Returns the alignment of spans that the host must keep to.
inline uint64_t BufferAlignment(const DeviceCaps& caps) {
  return std::max<uint64_t>(BindingAlignment(caps), sdk::kScratchAlignment);
}

// A run with the operand of each of its bindings.
struct OpRun {
  struct Operand {
    uint32_t tensor = kScratchOperand;  // kScratchOperand: the plan's scratch after its TEMP slots
    uint64_t offset = 0;  // bytes from the last possible start of a binding at or before the tensor
    uint64_t bytes = 0;
  };
  KernelRun run;
  std::vector<Operand> operands;  // by binding
  uint64_t operations = 0;        // approximate number
  const char* label = nullptr;    // for profiles, must stay valid
};

// For each tensor, the bytes from the last possible start of a binding to the tensor's first byte.
using Misalignment = std::vector<uint32_t>;

// Returns the number of an op's inputs, absent ones included. It is the index of the first output
// where an op's operands are numbered.
inline uint32_t InputsOf(uint32_t kind) {
  switch (kind) {
    case TRINE_OP_ATTENTION:
      return 7;
    case TRINE_OP_MOE_MATMUL:
      return 4;
    case TRINE_OP_LAYER_NORM:
    case TRINE_OP_MATMUL:
      return 3;
    case TRINE_OP_COPY:
    case TRINE_OP_ACTIVATION:
    case TRINE_OP_SCALE:
    case TRINE_OP_SOFTCAP:
    case TRINE_OP_TOP_K:
      return 1;
    default:
      return 2;
  }
}

// The tensors of an op at given parameters, as shaders see them. All arguments must outlive this.
class Operands {
 public:
  Operands(const RunChoices& choices, const sdk::Graph& graph, const Misalignment& misaligned,
           size_t index, const int64_t* params)
      : choices_(choices),
        graph_(graph),
        op_(graph.ops[index]),
        misaligned_(misaligned),
        params_(params) {}

  const sdk::Op& op() const { return op_; }
  bool Has(size_t i) const { return op_.HasInput(i); }

  TensorView In(size_t i) const { return ViewOf(op_.in[i]); }
  TensorView Out(size_t i) const { return ViewOf(op_.out[i]); }
  bool IsPacked(size_t i) const { return graph_.tensors[op_.in[i]].layout != TRINE_LAYOUT_PLAIN; }

  // Returns the size of a whole tensor, from the start of its binding.
  uint64_t BytesOf(uint32_t tensor) const {
    const TensorView view = ViewOf(tensor);
    uint64_t end = view.offset + RowBytes(tensor);
    for (int i = 1; i < 4; ++i) {
      if (view.dims[i] == 0) return view.offset;
      end += static_cast<uint64_t>(view.dims[i] - 1) * static_cast<uint64_t>(view.strides[i]);
    }
    return RoundUp(end, 4);
  }

  uint64_t RowBytes(uint32_t tensor) const {
    const trine_tensor& t = graph_.tensors[tensor];
    return backends::RowBytesOf(t, sdk::ResolveDims(t, params_));
  }

  // Appends `run` with whole tensors as its operands, and with `scratch` for kScratchOperand.
  // Returns "", or why a tensor can't be bound.
  std::string Bind(KernelRun run, OpRun::Operand scratch, uint64_t operations,
                   std::vector<OpRun>* runs) const {
    std::vector<uint32_t> tensors(op_.in);
    tensors.resize(InputsOf(op_.kind), TRINE_NONE);
    tensors.insert(tensors.end(), op_.out.begin(), op_.out.end());
    return BindTo(std::move(run), tensors, scratch, operations, runs);
  }

  // Does what Bind does, but takes any tensors of the graph as operands, by number.
  std::string BindTo(KernelRun run, const std::vector<uint32_t>& tensors, OpRun::Operand scratch,
                     uint64_t operations, std::vector<OpRun>* runs) const {
    OpRun bound;
    for (const uint32_t operand : run.operands) {
      if (operand == kScratchOperand) {
        bound.operands.push_back(scratch);
      } else {
        bound.operands.push_back({tensors[operand], 0, BytesOf(tensors[operand])});
      }
    }
    bound.run = std::move(run);
    bound.operations = operations;
    runs->push_back(std::move(bound));
    return WhyNotBound(runs->back());
  }

  std::string WhyNotBound(const OpRun& run) const {
    for (const OpRun::Operand& operand : run.operands) {
      if (operand.bytes > choices_.caps->max_storage_range) return WhyTooLarge(operand);
    }
    const DeviceCaps& caps = *choices_.caps;
    if (run.run.constants[0] > caps.max_workgroup_invocations) {
      return "the device's workgroups are too small for a shader";
    }
    if (run.run.shared_bytes > caps.max_shared_bytes) {
      return "the device's shared memory is too small for a shader";
    }
    for (size_t i = 0; i < run.run.groups.size(); ++i) {
      if (run.run.groups[i] > caps.max_workgroups[i])
        return "more workgroups than the device takes";
    }
    return MissingForShader(caps, *run.run.shader);
  }

  uint64_t Elements(const TensorView& view) const {
    return static_cast<uint64_t>(view.dims[0] * Rows(view));
  }

 private:
  std::string WhyTooLarge(const OpRun::Operand& operand) const {
    const bool cache = (op_.kind == TRINE_OP_KV_STORE && operand.tensor == op_.out[0]) ||
                       (op_.kind == TRINE_OP_ATTENTION &&
                        (operand.tensor == op_.in[1] || operand.tensor == op_.in[2]));
    return std::string(cache ? "a layer's cache" : "a tensor") +
           " is larger than the device can bind: " + std::to_string(operand.bytes) +
           " bytes, of at most " + std::to_string(choices_.caps->max_storage_range) +
           (cache ? "; a shorter context fits" : "");
  }

  TensorView ViewOf(uint32_t tensor) const {
    const trine_tensor& t = graph_.tensors[tensor];
    TensorView view;
    view.type = static_cast<quant::Type>(t.dtype);
    view.dims = sdk::ResolveDims(t, params_);
    view.strides = backends::StridesOf(t, view.dims);
    view.offset = misaligned_[tensor];
    return view;
  }

  const RunChoices& choices_;
  const sdk::Graph& graph_;
  const sdk::Op& op_;
  const Misalignment& misaligned_;
  const int64_t* params_;
};

}  // namespace trine::vulkan
