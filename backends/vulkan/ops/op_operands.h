// Binds runs of shaders to tensors. OpRun is a run with the range of bytes that each of its
// bindings has. Operands describes the tensors of one op as shaders see them, and makes OpRuns.
// Calls no driver.
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

// The layout of packed weights (kernels/quant/packed_rows.h). Whoever changes that layout must
// change the number here, which is in the layout's id: files of packed weights tell layouts apart
// by it.
inline constexpr backends::PackedLayout kPackedLayout("vulkan", sdk::OwnLayout("vulkan", 1),
                                                      /*gathers=*/false);

using backends::OpGroup;

// What the runs of a graph depend on besides the graph: what the device can do, and how its ops use
// it. `caps` must not be null, and must outlive this.
struct RunChoices {
  const DeviceCaps* caps = nullptr;
  Tuning tuning;
  ProductTuning products;
};

// Returns the alignment of the bytes at which a binding may begin, from its buffer's beginning. A
// tensor may begin between two such places.
inline uint64_t BindingAlignment(const DeviceCaps& caps) {
  return std::max<uint64_t>(caps.storage_alignment, 16);
}
// Returns the alignment of the spans that the host binds to a plan's slots and scratch: the
// device's `buffer_alignment` in the ABI.
inline uint64_t BufferAlignment(const DeviceCaps& caps) {
  return std::max<uint64_t>(BindingAlignment(caps), sdk::kScratchAlignment);
}

// A run of a shader, with the bytes that each of its bindings has.
struct OpRun {
  // Bytes of a tensor or of the scratch.
  struct Operand {
    // The number of a tensor of the graph. kScratchOperand: the plan's scratch after its TEMP
    // slots.
    uint32_t tensor = kScratchOperand;
    // Where the binding begins, a multiple of BindingAlignment: so many bytes after the last place
    // at or before the tensor's first byte where a binding may begin.
    uint64_t offset = 0;
    uint64_t bytes = 0;  // the size of the binding
  };
  KernelRun run;
  std::vector<Operand> operands;  // by binding
  uint64_t operations = 0;        // about how many additions and multiplications
  const char* label = nullptr;    // the name in time reports; must outlive all uses of the run
};

// [tensor]: the bytes from the last place where a binding may begin to the tensor's first byte. A
// shader gets them as an offset, because the binding begins before the tensor.
using Misalignment = std::vector<uint32_t>;

// Returns how many inputs an op of a kind has, absent ones included. Shaders' operands are numbered
// from the first input to the last output, so this is also the number of the first output.
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

// The tensors of an op in a run with given parameters, as shaders see them.
class Operands {
 public:
  // Describes op number `index` of the graph, with `params`, the values of the graph's parameters.
  // All arguments must outlive this object.
  Operands(const RunChoices& choices, const sdk::Graph& graph, const Misalignment& misaligned,
           size_t index, const int64_t* params)
      : choices_(choices),
        graph_(graph),
        op_(graph.ops[index]),
        misaligned_(misaligned),
        params_(params) {}

  const sdk::Op& op() const { return op_; }
  bool Has(size_t i) const { return op_.HasInput(i); }

  // Return input i and output i, and whether input i has a packed layout. REQUIRES: Has(i), or for
  // Out that the op has so many outputs.
  TensorView In(size_t i) const { return ViewOf(op_.in[i]); }
  TensorView Out(size_t i) const { return ViewOf(op_.out[i]); }
  bool IsPacked(size_t i) const { return graph_.tensors[op_.in[i]].layout != TRINE_LAYOUT_PLAIN; }

  // Returns the size of the binding of a whole tensor: the misaligned bytes before the tensor, and
  // the tensor with its gaps, rounded up to a multiple of 4.
  uint64_t BytesOf(uint32_t tensor) const {
    const TensorView view = ViewOf(tensor);
    uint64_t end = view.offset + RowBytes(tensor);
    for (int i = 1; i < 4; ++i) {
      if (view.dims[i] == 0) return view.offset;
      end += static_cast<uint64_t>(view.dims[i] - 1) * static_cast<uint64_t>(view.strides[i]);
    }
    return RoundUp(end, 4);
  }

  // Returns the bytes of one row of a tensor.
  uint64_t RowBytes(uint32_t tensor) const {
    const trine_tensor& t = graph_.tensors[tensor];
    return backends::RowBytesOf(t, sdk::ResolveDims(t, params_));
  }

  // Appends `run`, bound to the op's whole tensors, and to `scratch` where it has kScratchOperand.
  // `operations`: as in OpRun. Returns WhyNotBound of the run, which is appended in either case.
  std::string Bind(KernelRun run, OpRun::Operand scratch, uint64_t operations,
                   std::vector<OpRun>* runs) const {
    std::vector<uint32_t> tensors(op_.in);
    tensors.resize(InputsOf(op_.kind), TRINE_NONE);
    tensors.insert(tensors.end(), op_.out.begin(), op_.out.end());
    return BindTo(std::move(run), tensors, scratch, operations, runs);
  }

  // Does what Bind does, but with tensors of several ops: operand number n of the run is tensor
  // tensors[n] of the graph.
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

  // Returns why the device can't do a run with these bindings, or "" if it can: a binding, or the
  // shader's workgroup, is larger than the device allows, or it lacks a feature.
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

  // Returns the number of elements of a view.
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
