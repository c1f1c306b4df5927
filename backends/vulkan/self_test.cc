#include "backends/vulkan/self_test.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "backends/vulkan/buffers.h"
#include "backends/vulkan/handles.h"
#include "backends/vulkan/plan.h"
#include "kernels/quant/test_util.h"
#include "kernels/reference/ops.h"

namespace trine::vulkan {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;

// A dense tensor in host memory.
struct Tensor {
  Tensor(Type type, std::initializer_list<int64_t> dims) {
    view.type = type;
    std::copy(dims.begin(), dims.end(), view.dims);
    uint64_t row_bytes = 0;
    quant::RowBytes(type, view.dims[0], &row_bytes);
    view.strides[1] = static_cast<int64_t>(row_bytes);
    view.strides[2] = view.strides[1] * view.dims[1];
    view.strides[3] = view.strides[2] * view.dims[2];
    bytes.resize(static_cast<size_t>(view.strides[3] * view.dims[3]));
    view.data = bytes.data();
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  Tensor& Floats(Fill fill, Random* random) {
    for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      reinterpret_cast<float*>(view.data)[i] = quant::FillValue(fill, random);
    }
    return *this;
  }
  Tensor& Weights(Random* random) {
    bytes = quant::RandomWeights(view.type, view.dims[0] * reference::Rows(view), false, random);
    view.data = bytes.data();
    return *this;
  }
  Tensor& Ints(std::initializer_list<int32_t> values) {
    std::copy(values.begin(), values.end(), reinterpret_cast<int32_t*>(view.data));
    return *this;
  }

  reference::View view;
  std::vector<std::byte> bytes;
};

trine_tensor AbiTensor(const Tensor& t, uint32_t slot) {
  trine_tensor tensor{};
  tensor.dtype = static_cast<uint32_t>(t.view.type);
  tensor.rank = TRINE_MAX_RANK;
  tensor.slot = slot;
  std::copy(t.view.dims, t.view.dims + 4, tensor.dims);
  return tensor;
}

struct BufferFreer {
  void operator()(trine_buffer* buffer) const { BufferFree(buffer); }
};
struct PlanFreer {
  void operator()(trine_plan* plan) const { PlanDestroy(plan); }
};

class Runner {
 public:
  explicit Runner(trine_device* device) : device_(device) {}

  // One op over tensors of its own, its outputs as `reference` leaves them. The first failure
  // stays.
  template <class Attr>
  void Check(const char* name, uint32_t kind, const std::vector<const Tensor*>& in,
             const std::vector<Tensor*>& out, Attr attr, const std::function<void()>& reference) {
    if (!result_.failure.empty()) return;
    attr.struct_size = sizeof(attr);
    std::vector<std::vector<std::byte>> before, expected;
    for (const Tensor* t : out) before.push_back(t->bytes);
    reference();
    for (size_t i = 0; i < out.size(); ++i) {
      expected.push_back(out[i]->bytes);
      std::copy(before[i].begin(), before[i].end(), out[i]->bytes.begin());
    }
    trine_error err{};
    const trine_status status = Run(kind, in, out, &attr, &err);
    if (status != TRINE_OK) {
      result_ = {false, std::string(name) + ": " + err.message};
      return;
    }
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i]->bytes != expected[i]) result_.failure = name;
    }
  }

  const SelfTestResult& result() const { return result_; }

 private:
  trine_status Run(uint32_t kind, const std::vector<const Tensor*>& in,
                   const std::vector<Tensor*>& out, const void* attr, trine_error* err) {
    std::vector<trine_slot> slots;
    std::vector<trine_tensor> tensors;
    std::vector<trine_binding> bindings;
    std::vector<std::unique_ptr<trine_buffer, BufferFreer>> buffers;
    std::vector<uint32_t> ins, outs;
    const auto add = [&](const Tensor& t, uint32_t role) -> trine_status {
      const auto slot = static_cast<uint32_t>(slots.size());
      const trine_buffer_desc desc{sizeof(desc), TRINE_MEMORY_STATE, t.bytes.size()};
      trine_buffer* buffer = nullptr;
      trine_status status = BufferAlloc(device_, &desc, &buffer, err);
      if (status != TRINE_OK) return status;
      buffers.emplace_back(buffer);
      status = BufferWrite(buffer, 0, t.bytes.data(), t.bytes.size(), err);
      slots.push_back({role, 1, t.bytes.size()});
      tensors.push_back(AbiTensor(t, slot));
      bindings.push_back({slot, 0, {buffer, 0, t.bytes.size()}});
      return status;
    };
    for (const Tensor* t : in) {
      if (t == nullptr) {
        ins.push_back(TRINE_NONE);
        continue;
      }
      ins.push_back(static_cast<uint32_t>(tensors.size()));
      const trine_status status = add(*t, TRINE_ROLE_CONSTANT);
      if (status != TRINE_OK) return status;
    }
    for (const Tensor* t : out) {
      outs.push_back(static_cast<uint32_t>(tensors.size()));
      const trine_status status = add(*t, TRINE_ROLE_STATE);
      if (status != TRINE_OK) return status;
    }
    trine_op op{};
    op.kind = kind;
    op.n_in = static_cast<uint32_t>(ins.size());
    op.n_out = static_cast<uint32_t>(outs.size());
    op.in = ins.data();
    op.out = outs.data();
    op.attr = attr;
    trine_graph graph{};
    graph.struct_size = sizeof(graph);
    graph.numerics = TRINE_NUMERICS_FAST;  // whether it is exact is what is being found out
    graph.n_slots = static_cast<uint32_t>(slots.size());
    graph.slot_stride = sizeof(trine_slot);
    graph.slots = slots.data();
    graph.n_tensors = static_cast<uint32_t>(tensors.size());
    graph.tensor_stride = sizeof(trine_tensor);
    graph.tensors = tensors.data();
    graph.n_ops = 1;
    graph.op_stride = sizeof(trine_op);
    graph.ops = &op;
    graph.param_stride = sizeof(trine_param);
    return RunGraph(graph, bindings, buffers.size() - out.size(), out, err);
  }

  trine_status RunGraph(const trine_graph& graph, const std::vector<trine_binding>& bindings,
                        size_t first_out, const std::vector<Tensor*>& out, trine_error* err) {
    trine_plan_info info{};
    info.struct_size = sizeof(info);
    trine_status status = PlanQuery(device_, &graph, &info, err);
    if (status != TRINE_OK) return status;
    std::unique_ptr<trine_buffer, BufferFreer> scratch;
    if (info.scratch_bytes != 0) {
      const trine_buffer_desc desc{sizeof(desc), TRINE_MEMORY_STATE, info.scratch_bytes};
      trine_buffer* buffer = nullptr;
      status = BufferAlloc(device_, &desc, &buffer, err);
      if (status != TRINE_OK) return status;
      scratch.reset(buffer);
    }
    trine_plan_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.n_bindings = static_cast<uint32_t>(bindings.size());
    desc.binding_stride = sizeof(trine_binding);
    desc.graph = &graph;
    desc.bindings = bindings.data();
    desc.scratch = {scratch.get(), 0, info.scratch_bytes};
    trine_plan* made = nullptr;
    status = PlanCreate(device_, &desc, &made, err);
    if (status != TRINE_OK) return status;
    const std::unique_ptr<trine_plan, PlanFreer> plan(made);
    trine_run_args args{};
    args.struct_size = sizeof(args);
    status = PlanRun(plan.get(), &args, err);
    for (size_t i = 0; status == TRINE_OK && i < out.size(); ++i) {
      status = BufferRead(bindings[first_out + i].span.buffer, 0, out[i]->bytes.data(),
                          out[i]->bytes.size(), err);
    }
    return status;
  }

  trine_device* device_;
  SelfTestResult result_;
};

struct NoAttr {
  uint32_t struct_size;
};

void CheckProducts(Runner* runner, Random* random) {
  const struct {
    Type type;
    int64_t columns;
  } cases[] = {{Type::kQ8_0, 1}, {Type::kQ4_K, 1}, {Type::kF16, 1}, {Type::kQ4_0, 20}};
  for (const auto& c : cases) {
    Tensor w(c.type, {512, 24}), x(Type::kF32, {512, c.columns}), bias(Type::kF32, {24});
    Tensor y(Type::kF32, {24, c.columns});
    w.Weights(random);
    x.Floats(Fill::kWide, random);
    bias.Floats(Fill::kUniform, random);
    runner->Check("matmul", TRINE_OP_MATMUL, {&w, &x, &bias}, {&y}, NoAttr{}, [&] {
      reference::Matmul(w.view, x.view, &bias.view, y.view, {0, 24});
    });
  }
}

void CheckFloats(Runner* runner, Random* random) {
  Tensor x(Type::kF32, {300, 3}), weight(Type::kF32, {300}), up(Type::kF32, {300, 3});
  Tensor y(Type::kF32, {300, 3});
  x.Floats(Fill::kWide, random);
  weight.Floats(Fill::kUniform, random);
  up.Floats(Fill::kUniform, random);
  runner->Check("rms_norm", TRINE_OP_RMS_NORM, {&x, &weight}, {&y}, trine_norm_attr{0, 1e-6f}, [&] {
    reference::RmsNorm(x.view, &weight.view, 1e-6f, y.view, reference::AllRows(y.view));
  });
  runner->Check("glu", TRINE_OP_GLU, {&x, &up}, {&y}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0},
                [&] { reference::Glu(x.view, up.view, {}, y.view, reference::AllRows(y.view)); });
  runner->Check("softcap", TRINE_OP_SOFTCAP, {&up}, {&y}, trine_scale_attr{0, 30.0f},
                [&] { reference::Softcap(up.view, 30.0f, y.view, reference::AllRows(y.view)); });
  Tensor heads(Type::kF32, {64, 4, 3}), table(Type::kF32, {64, 3}), turned(Type::kF32, {64, 4, 3});
  heads.Floats(Fill::kUniform, random);
  table.Floats(Fill::kUniform, random);
  runner->Check("rope", TRINE_OP_ROPE, {&heads, &table}, {&turned},
                trine_rope_attr{0, TRINE_ROPE_HALVES}, [&] {
                  reference::Rope(heads.view, table.view, reference::RopeMode::kHalves, turned.view,
                                  reference::AllRows(turned.view));
                });
}

void CheckAttention(Runner* runner, Random* random) {
  constexpr int64_t kBlock = 64, kBlocks = 5;
  Tensor x(Type::kF32, {64, 2, 7}), slots(Type::kI32, {7});
  Tensor k(Type::kF16, {64, kBlock, 2, kBlocks}), v(Type::kF16, {64, kBlock, 2, kBlocks});
  k.Weights(random);
  v.Weights(random);
  x.Floats(Fill::kUniform, random);
  slots.Ints({3, 0, 70, 319, 64, 1, -1});
  runner->Check("kv_store", TRINE_OP_KV_STORE, {&x, &slots}, {&k}, NoAttr{}, [&] {
    reference::KvStore(x.view, slots.view, k.view, reference::AllRows(x.view));
  });
  Tensor q(Type::kF32, {64, 4, 3}), y(Type::kF32, {64, 4, 3});
  Tensor blocks(Type::kI32, {kBlocks, 1}), offsets(Type::kI32, {2}), lengths(Type::kI32, {1});
  q.Floats(Fill::kUniform, random);
  blocks.Ints({4, 0, 2, 1, 3});
  offsets.Ints({0, 3});
  lengths.Ints({300});
  reference::AttentionParams params;
  params.scale = 0.125f;
  runner->Check("attention", TRINE_OP_ATTENTION, {&q, &k, &v, &blocks, &offsets, &lengths}, {&y},
                trine_attention_attr{0, TRINE_ATTENTION_CAUSAL, params.scale, 0.0f, 0}, [&] {
                  const reference::AttentionInputs inputs{
                      q.view, k.view, v.view, blocks.view, offsets.view, lengths.view, nullptr};
                  reference::Attention(inputs, params, y.view, reference::AllRows(y.view));
                });
}

}  // namespace

SelfTestResult RunSelfTest(trine_device* device) {
  Random random(20261115);
  Runner runner(device);
  CheckFloats(&runner, &random);
  CheckProducts(&runner, &random);
  CheckAttention(&runner, &random);
  return runner.result();
}

}  // namespace trine::vulkan
