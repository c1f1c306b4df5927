// The tensors of one op at a run's dimensions, as shaders see and bind them.
#ifndef TRINE_BACKENDS_VULKAN_OP_OPERANDS_H_
#define TRINE_BACKENDS_VULKAN_OP_OPERANDS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/vulkan/layouts.h"
#include "backends/vulkan/op_runs.h"

namespace trine::vulkan {

inline uint64_t RoundUp(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

// Inputs of an op, absent optional ones included: outputs are counted from there.
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

// An op's tensors at some parameters, as shaders see them.
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

  // All of a tensor, from where its binding begins.
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
    if (t.layout != TRINE_LAYOUT_PLAIN) return backends::PackedRowBytesOf(t);
    return static_cast<uint64_t>(sdk::ValueBytes(t.dtype, sdk::ResolveDims(t, params_)[0]));
  }

  // `run` with whole tensors for its operands, and `scratch` for the one that is none. "" or why a
  // tensor can't be bound.
  std::string Bind(KernelRun run, OpRun::Operand scratch, uint64_t operations,
                   std::vector<OpRun>* runs) const {
    std::vector<uint32_t> tensors(op_.in);
    tensors.resize(InputsOf(op_.kind), TRINE_NONE);
    tensors.insert(tensors.end(), op_.out.begin(), op_.out.end());
    return BindTo(std::move(run), tensors, scratch, operations, runs);
  }

  // The same with any tensors of the graph for operands, by number.
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
    view.strides = sdk::ResolveStrides(t, view.dims);
    if (t.layout != TRINE_LAYOUT_PLAIN) {
      view.strides[1] = static_cast<int64_t>(backends::PackedRowBytesOf(t));
      view.strides[2] = view.strides[1] * view.dims[1];
      view.strides[3] = view.strides[2] * view.dims[2];
    }
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

#endif  // TRINE_BACKENDS_VULKAN_OP_OPERANDS_H_
