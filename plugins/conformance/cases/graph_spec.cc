#include "plugins/conformance/cases/graph_spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "trine/sdk/graph.h"
#include "trine/sdk/op_rules.h"

namespace trine::conformance {
namespace {

constexpr int64_t kGapBytes = 12;  // not a multiple of a vector's width
constexpr uint64_t kFrontBytes = 64;

trine_tensor MakeTensor(uint32_t dtype, const std::vector<int64_t>& dims, uint32_t slot) {
  trine_tensor t{};
  t.dtype = dtype;
  t.rank = static_cast<uint32_t>(dims.size());
  t.slot = slot;
  for (size_t i = 0; i < 4; ++i) t.dims[i] = i < dims.size() ? dims[i] : 1;
  return t;
}

}  // namespace

int64_t GraphSpec::AddParam(uint32_t kind, int64_t min, int64_t max) {
  params.push_back({kind, 0, min, max});
  return -static_cast<int64_t>(params.size());
}

uint32_t GraphSpec::AddTensor(uint32_t role, uint32_t dtype, std::vector<int64_t> dims) {
  trine_tensor t = MakeTensor(dtype, dims, static_cast<uint32_t>(slots.size()));
  const sdk::Dims at_max = sdk::ResolveDims(t, MaxParams().data());
  const int64_t extent = sdk::internal::Extent(t, at_max);
  slots.push_back({role, 1, static_cast<uint64_t>(std::max<int64_t>(extent, 4))});
  tensors.push_back(t);
  return static_cast<uint32_t>(tensors.size() - 1);
}

uint32_t GraphSpec::AddGappedTensor(uint32_t role, uint32_t dtype, std::vector<int64_t> dims) {
  trine_tensor t = MakeTensor(dtype, dims, static_cast<uint32_t>(slots.size()));
  const sdk::Dims at_max = sdk::ResolveDims(t, MaxParams().data());
  int64_t packed = sdk::ValueBytes(dtype, at_max[0]);
  for (uint32_t i = 1; i < t.rank; ++i) {
    t.strides[i] = packed + kGapBytes;
    packed = t.strides[i] * at_max[i];
  }
  t.offset = kFrontBytes;
  const int64_t extent = sdk::internal::Extent(t, at_max);
  slots.push_back({role, 1, kFrontBytes + static_cast<uint64_t>(extent) + kFrontBytes});
  tensors.push_back(t);
  return static_cast<uint32_t>(tensors.size() - 1);
}

void GraphSpec::AddOp(uint32_t kind, std::vector<uint32_t> in, std::vector<uint32_t> out) {
  ops.push_back({kind, std::move(in), std::move(out), {}});
}

std::vector<int64_t> GraphSpec::MaxParams() const {
  std::vector<int64_t> values;
  for (const trine_param& p : params) values.push_back(p.max);
  return values;
}

bool GraphSpec::Writes(uint32_t slot) const {
  for (const OpSpec& op : ops) {
    for (uint32_t t : op.out) {
      if (tensors[t].slot == slot) return true;
    }
  }
  return false;
}

std::string GraphSpec::Describe() const {
  std::string text;
  const auto add_tensor = [&](uint32_t index) {
    if (index == TRINE_NONE || index >= tensors.size()) {
      absl::StrAppend(&text, " -");
      return;
    }
    const trine_tensor& t = tensors[index];
    absl::StrAppend(&text, " ", sdk::DtypeName(t.dtype), "[");
    for (uint32_t i = 0; i < std::min(t.rank, 4u); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ",");
      if (t.dims[i] < 0) {
        absl::StrAppend(&text, "p", -t.dims[i] - 1);
      } else {
        absl::StrAppend(&text, t.dims[i]);
      }
    }
    absl::StrAppend(&text, "]");
  };
  for (const OpSpec& op : ops) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", sdk::OpName(op.kind));
    for (uint32_t t : op.in) add_tensor(t);
    absl::StrAppend(&text, " ->");
    for (uint32_t t : op.out) add_tensor(t);
  }
  return text;
}

PackedGraph::PackedGraph(const GraphSpec& spec, size_t padding)
    : graph_(sizeof(trine_graph) + padding, kGarbage),
      slots_(Spread(spec.slots, padding)),
      tensors_(Spread(spec.tensors, padding)),
      params_(Spread(spec.params, padding)) {
  std::vector<trine_op> ops;
  for (const OpSpec& op : spec.ops) {
    operands_.push_back(op.in);
    operands_.push_back(op.out);
    Bytes attr = op.attr;
    if (!attr.empty() && padding != 0) {
      attr.resize(attr.size() + padding, kGarbage);
      const auto size = static_cast<uint32_t>(attr.size());
      std::memcpy(attr.data(), &size, sizeof(size));
    }
    attrs_.push_back(std::move(attr));
  }
  for (size_t i = 0; i < spec.ops.size(); ++i) {
    trine_op op{};
    op.kind = spec.ops[i].kind;
    op.n_in = static_cast<uint32_t>(spec.ops[i].in.size());
    op.n_out = static_cast<uint32_t>(spec.ops[i].out.size());
    op.in = operands_[2 * i].data();
    op.out = operands_[2 * i + 1].data();
    op.attr = attrs_[i].empty() ? nullptr : attrs_[i].data();
    ops.push_back(op);
  }
  ops_ = Spread(ops, padding);

  trine_graph g{};
  g.struct_size = static_cast<uint32_t>(graph_.size());
  g.numerics = spec.numerics;
  g.n_slots = static_cast<uint32_t>(spec.slots.size());
  g.slot_stride = static_cast<uint32_t>(sizeof(trine_slot) + padding);
  g.n_tensors = static_cast<uint32_t>(spec.tensors.size());
  g.tensor_stride = static_cast<uint32_t>(sizeof(trine_tensor) + padding);
  g.n_ops = static_cast<uint32_t>(spec.ops.size());
  g.op_stride = static_cast<uint32_t>(sizeof(trine_op) + padding);
  g.n_params = static_cast<uint32_t>(spec.params.size());
  g.param_stride = static_cast<uint32_t>(sizeof(trine_param) + padding);
  g.slots = reinterpret_cast<const trine_slot*>(slots_.data());
  g.tensors = reinterpret_cast<const trine_tensor*>(tensors_.data());
  g.ops = reinterpret_cast<const trine_op*>(ops_.data());
  g.params = reinterpret_cast<const trine_param*>(params_.data());
  std::memcpy(graph_.data(), &g, sizeof(g));
}

void PackedGraph::Scribble() {
  for (Bytes* bytes : {&graph_, &slots_, &tensors_, &ops_, &params_}) {
    std::fill(bytes->begin(), bytes->end(), kGarbage);
  }
  for (auto& list : operands_) std::fill(list.begin(), list.end(), 0xA5A5A5A5u);
  for (Bytes& attr : attrs_) std::fill(attr.begin(), attr.end(), kGarbage);
}

}  // namespace trine::conformance
