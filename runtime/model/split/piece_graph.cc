#include "runtime/model/split/piece_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

constexpr int64_t kValueBytes = 4;

Shape ShapeOf(const trine_tensor& t) { return Shape(t.dims, t.dims + t.rank); }

const WeightUse* FindWeight(const SegmentGraph& segment, TensorId tensor) {
  const auto found = std::find_if(segment.weights.begin(), segment.weights.end(),
                                  [&](const WeightUse& use) { return use.tensor == tensor; });
  return found == segment.weights.end() ? nullptr : &*found;
}

// Returns the tensor that a slot was made for. Other tensors of the slot are views of it.
TensorId FirstOf(const OpGraph& graph, SlotId slot) {
  TensorId id = 0;
  while (graph.SlotOf(id) != slot) ++id;
  return id;
}

}  // namespace

const gguf::TensorInfo* WeightSlices::Slice(const gguf::TensorInfo& tensor, int64_t begin,
                                            int64_t end) {
  const bool is_vector = tensor.rank == 1;
  const auto all = static_cast<uint64_t>(is_vector ? tensor.dims[0] : tensor.Rows());
  if (begin == 0 && static_cast<uint64_t>(end) == all) return &tensor;
  const gguf::TensorInfo*& known = known_[{&tensor, begin, end}];
  if (known != nullptr) return known;
  Item& item = items_.emplace_back();
  item.name = absl::StrCat(std::string(tensor.name), "[", begin, ":", end, "]");
  item.info = tensor;
  item.info.name = item.name;
  item.info.dims[is_vector ? 0 : 1] = end - begin;
  const uint64_t row_bytes = tensor.bytes / all;
  const uint64_t skipped = static_cast<uint64_t>(begin) * row_bytes;
  item.info.offset += skipped;
  item.info.data += skipped;
  item.info.bytes = static_cast<uint64_t>(end - begin) * row_bytes;
  return known = &item.info;
}

bool HasRows(const SegmentGraph& segment, size_t index) {
  const OpGraph& g = segment.graph;
  const trine_op& op = g.op(index);
  if (op.kind != TRINE_OP_MATMUL || op.n_in < 2) return false;
  const WeightUse* weight = FindWeight(segment, op.in[0]);
  if (weight == nullptr || weight->as_f32 || weight->info->rank != 2) return false;
  const trine_tensor& w = g.tensor(op.in[0]);
  const trine_tensor& y = g.tensor(op.out[0]);
  if (w.rank != 2 || weight->info->dims[1] != w.dims[1]) return false;
  if (op.n_in > 2 && op.in[2] != TRINE_NONE) {
    const WeightUse* bias = FindWeight(segment, op.in[2]);
    if (bias == nullptr || bias->info->rank != 1) return false;
  }
  return y.rank == 2 && y.dims[0] == w.dims[1] && FirstOf(g, y.slot) == op.out[0];
}

PieceGraph::PieceGraph(const SegmentGraph& whole, const std::vector<bool>& is_io,
                       WeightSlices* slices)
    : whole_(whole), is_io_(is_io), slices_(slices) {
  piece_.graph = OpGraph(whole.graph.numerics());
  for (const trine_param& p : whole.graph.params()) piece_.graph.AddParam(p.kind, p.min, p.max);
}

TensorId PieceGraph::Base(SlotId slot) {
  const auto [found, is_new] = bases_.try_emplace(slot);
  if (!is_new) return found->second;
  const trine_tensor& t = whole_.graph.tensor(FirstOf(whole_.graph, slot));
  const uint32_t role = is_io_[slot] ? TRINE_ROLE_IO : TRINE_ROLE_TEMP;
  found->second = piece_.graph.AddTensor(role, t.dtype, ShapeOf(t), t.offset);
  if (is_io_[slot]) io_[slot] = found->second;
  return found->second;
}

TensorId PieceGraph::MapState(TensorId tensor) {
  const trine_tensor& t = whole_.graph.tensor(tensor);
  const TensorId id = piece_.graph.AddTensor(TRINE_ROLE_STATE, t.dtype, ShapeOf(t), t.offset);
  for (const KvUse& use : whole_.caches) {
    if (use.tensor == tensor) piece_.caches.push_back({id, use.layer, use.number});
  }
  return id;
}

TensorId PieceGraph::AddWeight(TensorId tensor, int64_t begin, int64_t end) {
  const WeightUse& use = *FindWeight(whole_, tensor);
  const trine_tensor& t = whole_.graph.tensor(tensor);
  Shape shape = ShapeOf(t);
  shape.back() = end - begin;
  const TensorId id = piece_.graph.AddTensor(TRINE_ROLE_CONSTANT, t.dtype, shape);
  const bool all = end - begin == t.dims[t.rank - 1];
  const gguf::TensorInfo* info = all ? use.info : slices_->Slice(*use.info, begin, end);
  piece_.weights.push_back({id, info, use.as_f32, std::nullopt});
  return id;
}

TensorId PieceGraph::Map(TensorId tensor) {
  if (tensor == TRINE_NONE) return TRINE_NONE;
  const auto known = mapped_.find(tensor);
  if (known != mapped_.end()) return known->second;
  const trine_tensor& t = whole_.graph.tensor(tensor);
  const uint32_t role = whole_.graph.slots()[t.slot].role;
  TensorId id = 0;
  if (role == TRINE_ROLE_CONSTANT) {
    id = AddWeight(tensor, 0, t.dims[t.rank - 1]);
  } else if (role == TRINE_ROLE_STATE) {
    id = MapState(tensor);
  } else {
    id = Base(t.slot);
    const TensorId first = FirstOf(whole_.graph, t.slot);
    if (first != tensor) {
      id = piece_.graph.AddView(id, ShapeOf(t), Shape(std::begin(t.strides), std::end(t.strides)),
                                t.offset - whole_.graph.tensor(first).offset);
    }
  }
  mapped_[tensor] = id;
  return id;
}

void PieceGraph::AddOp(size_t index) {
  const trine_op& op = whole_.graph.op(index);
  std::vector<TensorId> in, out;
  for (uint32_t i = 0; i < op.n_in; ++i) in.push_back(Map(op.in[i]));
  for (uint32_t i = 0; i < op.n_out; ++i) out.push_back(Map(op.out[i]));
  piece_.graph.AddOpLike(op, std::move(in), std::move(out));
}

TensorId PieceGraph::AddRows(size_t index, int64_t begin, int64_t end, bool apart) {
  const trine_op& op = whole_.graph.op(index);
  std::vector<TensorId> in = {AddWeight(op.in[0], begin, end), Map(op.in[1])};
  if (op.n_in > 2) {
    in.push_back(op.in[2] == TRINE_NONE ? TRINE_NONE : AddWeight(op.in[2], begin, end));
  }
  const trine_tensor& y = whole_.graph.tensor(op.out[0]);
  const Shape shape = {end - begin, y.dims[1]};
  const TensorId id = apart
                          ? piece_.graph.AddTensor(TRINE_ROLE_IO, y.dtype, shape)
                          : piece_.graph.AddView(Base(y.slot), shape, {0, y.dims[0] * kValueBytes},
                                                 static_cast<uint64_t>(begin * kValueBytes));
  piece_.graph.AddOpLike(op, std::move(in), {id});
  return id;
}

SegmentGraph PieceGraph::Take() {
  piece_.graph.Finish();
  return std::move(piece_);
}

}  // namespace trine
