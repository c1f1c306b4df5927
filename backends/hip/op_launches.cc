#include "backends/hip/op_launches.h"

#include <algorithm>
#include <optional>

#include "backends/common/op_attributes.h"
#include "kernels/hip/attention/attention.h"
#include "kernels/hip/gemm/gemm.h"
#include "kernels/hip/gemv/gemv.h"
#include "kernels/hip/ops/column_norm.h"
#include "kernels/hip/ops/ops.h"

namespace trine::hip {
namespace {

using backends::IsProduct;
using Kind = OpGroup::Kind;

// An address for tensors of which only the shape matters. It is never accessed.
std::byte* const kNowhere = reinterpret_cast<std::byte*>(kAlignment);

uint64_t RoundUpScratch(uint64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

int64_t MostGemvColumns(const Product& product) {
  return product.ids.present() ? kGemvExpertColumns : kGemvColumns;
}

bool IsGemv(const Product& product) { return product.columns() <= MostGemvColumns(product); }

Tensor MakeTensor(const sdk::Graph& graph, uint32_t index, std::byte* place,
                  const int64_t* params) {
  const trine_tensor& t = graph.tensors[index];
  Tensor tensor;
  tensor.data = place;
  tensor.constant = graph.slots[t.slot].role == TRINE_ROLE_CONSTANT;
  tensor.type = static_cast<quant::Type>(t.dtype);
  const sdk::Dims dims = sdk::ResolveDims(t, params);
  const sdk::Dims strides = backends::StridesOf(t, dims);
  std::copy(dims.begin(), dims.end(), tensor.dims.begin());
  std::copy(strides.begin(), strides.end(), tensor.strides.begin());
  tensor.packed = t.layout != TRINE_LAYOUT_PLAIN;
  return tensor;
}

// Returns the positions that attention may see, rounded up to whole chunks.
int64_t PositionsOf(const sdk::Graph& graph, const AttentionTensors& tensors,
                    const int64_t* params) {
  return backends::PositionsSeen(graph, tensors.block_table.dims[0] * tensors.k.dims[1], params);
}

// The tensors of one op for some parameters, without their places.
class Shapes {
 public:
  Shapes(const sdk::Graph& graph, const sdk::Op& op, const int64_t* params)
      : graph_(graph), op_(op), params_(params) {}

  Tensor In(size_t i) const { return op_.HasInput(i) ? At(op_.in[i]) : Tensor{}; }
  Tensor Out(size_t i) const { return At(op_.out[i]); }

 private:
  Tensor At(uint32_t tensor) const { return MakeTensor(graph_, tensor, kNowhere, params_); }

  const sdk::Graph& graph_;
  const sdk::Op& op_;
  const int64_t* params_;
};

// `tensors` provides In(i) and Out(i) of the op.
template <class Tensors>
Product ProductOf(const Tensors& tensors, bool experts) {
  Product product;
  product.w = tensors.In(0);
  product.x = tensors.In(1);
  product.bias = tensors.In(experts ? 3 : 2);
  if (experts) product.ids = tensors.In(2);
  product.y = tensors.Out(0);
  return product;
}

template <class Tensors>
AttentionTensors AttentionOf(const Tensors& tensors) {
  AttentionTensors a;
  a.q = tensors.In(0);
  a.k = tensors.In(1);
  a.v = tensors.In(2);
  a.block_table = tensors.In(3);
  a.q_offsets = tensors.In(4);
  a.kv_lengths = tensors.In(5);
  a.sinks = tensors.In(6);
  a.y = tensors.Out(0);
  return a;
}

// Returns the bytes of the quantised activations. Lists of experts come after them.
uint64_t QuantizedPart(const Product& product) {
  return quant::IsQuantized(product.w.type)
             ? RoundUpScratch(QuantizedBytes(product.w.dims[0] / 32, product.x.rows()))
             : 0;
}

}  // namespace

LaunchScratch ScratchOf(const DeviceShape& shape, const sdk::Graph& graph) {
  LaunchScratch scratch;
  const std::vector<int64_t> max = graph.MaxParams();
  for (const sdk::Op& op : graph.ops) {
    const Shapes shapes(graph, op, max.data());
    if (IsProduct(op.kind)) {
      const Product product = ProductOf(shapes, op.kind == TRINE_OP_MOE_MATMUL);
      // Takes the most of all ways, because a run with fewer columns may go another way than the
      // largest.
      const uint64_t own = RoundUpScratch(GemmScratchBytes(product));
      scratch.product_bytes = std::max(scratch.product_bytes, QuantizedPart(product) + own);
      if (quant::IsQuantized(product.w.type)) {
        // A glu writes the second place. With experts it has up to that many columns, whichever
        // product reads them.
        static_assert(kGemvExpertColumns >= kGemvColumns);
        const int64_t columns = std::min(product.x.rows(), kGemvExpertColumns);
        scratch.second_bytes = std::max(
            scratch.second_bytes, RoundUpScratch(QuantizedBytes(product.w.dims[0] / 32, columns)));
      }
    } else if (op.kind == TRINE_OP_ATTENTION) {
      const AttentionTensors tensors = AttentionOf(shapes);
      const int64_t positions = PositionsOf(graph, tensors, max.data());
      scratch.attention_bytes =
          std::max(scratch.attention_bytes,
                   RoundUpScratch(AttentionScratchBytes(tensors, positions, shape)));
    }
  }
  return scratch;
}

std::string WhyNotOp(const sdk::Graph& graph, size_t index) {
  const sdk::Op& op = graph.ops[index];
  std::string why = backends::WhyNotAttributes(op);
  if (why.empty()) why = kPackedLayout.WhyNotIn(graph, index);
  if (!why.empty() || !IsProduct(op.kind)) return why;
  const std::vector<int64_t> max = graph.MaxParams();
  Product product = ProductOf(Shapes(graph, op, max.data()), op.kind == TRINE_OP_MOE_MATMUL);
  if (quant::IsQuantized(product.w.type)) {
    product.q = QuantizedAt(kNowhere, product.w.dims[0] / 32, product.x.rows());
  }
  why = WhyNotGemv(product);
  return why.empty() ? WhyNotGemm(product) : why;
}

OpLaunches::OpLaunches(const DeviceShape& shape, const sdk::Graph& graph,
                       const LaunchScratch& sizes, std::byte* scratch,
                       const std::vector<std::byte*>& places, const int64_t* params)
    : shape_(shape),
      graph_(graph),
      sizes_(sizes),
      scratch_(scratch),
      places_(places),
      params_(params),
      written_(graph.slots.size(), false) {
  for (const sdk::Op& op : graph.ops) {
    for (const uint32_t out : op.out) written_[graph.tensors[out].slot] = true;
  }
}

Tensor OpLaunches::TensorAt(uint32_t index) const {
  Tensor tensor = MakeTensor(graph_, index, places_[index], params_);
  // A run's inputs are in place before any kernel that may begin early (Work::inputs).
  const uint32_t slot = graph_.tensors[index].slot;
  tensor.constant |= graph_.slots[slot].role == TRINE_ROLE_IO && !written_[slot];
  return tensor;
}

Tensor OpLaunches::In(const sdk::Op& op, size_t i) const {
  return op.HasInput(i) ? TensorAt(op.in[i]) : Tensor{};
}

QuantizedColumns OpLaunches::Quantized(int64_t values, int64_t columns, uint32_t place) const {
  std::byte* second = scratch_ + sizes_.product_bytes + sizes_.attention_bytes;
  return QuantizedAt(place == 0 ? scratch_ : second, values / 32, columns);
}

Product OpLaunches::MakeProduct(const OpGroup& group, uint32_t place) const {
  const sdk::Op& op = OpAt(group, 0);
  Product product = ProductOf(Placed{*this, op}, op.kind == TRINE_OP_MOE_MATMUL);
  if (quant::IsQuantized(product.w.type)) {
    product.q = Quantized(product.w.dims[0], product.x.rows(), place);
  }
  return product;
}

void OpLaunches::AddProducts(std::span<const OpGroup> groups, const GroupRun& run,
                             std::vector<Launch>* launches) const {
  std::optional<Norm> norm;
  if (run.norm) norm = MakeNorm(groups.front(), run.added);
  std::vector<Product> products;
  for (const OpGroup& group : groups.subspan(run.norm || run.routes ? 1 : 0, run.products())) {
    products.push_back(MakeProduct(group, run.from));
  }
  const bool along =
      norm && (run.glu ? IsColumnNorm(*norm) : HasNormedGemv(*norm, products.front()));
  if (norm && !along) {
    launches->push_back(NormLaunch(*norm));
    launches->back().label = RunName(graph_, groups, {.added = run.added});
    norm.reset();
  }
  Product& first = products.front();
  if (!run.norm && groups.front().quantizes) {
    launches->push_back(QuantizeLaunch(first.x, first.q));
    launches->back().label = sdk::kQuantizeName;
  }
  if (run.adds) {
    const uint32_t at = groups.back().first + groups.back().count;
    const sdk::Op &last = graph_.ops[at - 1], &add = graph_.ops[at];
    const bool second = sdk::SameView(graph_.tensors[add.in[0]], graph_.tensors[last.out[0]]);
    first.addend = In(add, second ? 1 : 0);
    first.y = Out(add, 0);
  }
  if (run.glu) {
    const sdk::Op& glu = OpAt(groups.back(), 0);
    const Tensor y = Out(glu, 0);
    const QuantizedColumns to = Quantized(y.dims[0], y.rows(), run.to);
    const reference::GluParams params = backends::GluParamsOf(glu);
    launches->push_back(run.routes ? RoutedGluGemvLaunch(MakeRoute(OpAt(groups.front(), 0)), first,
                                                         products[1], params, to, shape_)
                                   : GluGemvLaunch(norm ? &*norm : nullptr, first, products[1],
                                                   params, to, shape_));
  } else if (run.combines) {
    const sdk::Op& combination = OpAt(groups.back(), 0);
    const Tensor addend = first.addend, y = run.adds ? first.y : Out(combination, 0);
    first.addend = {};
    first.y = In(combination, 0);
    launches->push_back(CombineGemvLaunch(first, In(combination, 1), addend, y, shape_));
  } else if (norm) {
    launches->push_back(NormedGemvLaunch(*norm, first, shape_));
  } else if (IsGemv(first)) {
    launches->push_back(GemvLaunch(products, shape_));
  } else {
    AddGemm(first, shape_, scratch_ + QuantizedPart(first), launches);
  }
}

MoeRoute OpLaunches::MakeRoute(const sdk::Op& op) const {
  return {In(op, 0), In(op, 1), backends::RouteParamsOf(op), Out(op, 0), Out(op, 1)};
}

AttentionTensors OpLaunches::MakeAttention(const OpGroup& group) const {
  return AttentionOf(Placed{*this, OpAt(group, 0)});
}

void OpLaunches::AddAttention(const OpGroup& group, const RotateStore* before,
                              std::vector<Launch>* launches) const {
  AttentionTensors tensors = MakeAttention(group);
  QuantizedColumns quantized;
  if (group.quantizes) {
    quantized = Quantized(tensors.y.dims[0] * tensors.y.dims[1], tensors.y.dims[2]);
    if (before != nullptr && !group.writes) tensors.y.data = nullptr;
  }
  hip::AddAttention(tensors, backends::AttentionParamsOf(OpAt(group, 0)),
                    PositionsOf(graph_, tensors, params_), scratch_ + sizes_.product_bytes,
                    quantized, before, shape_, launches);
}

void OpLaunches::AddAttended(std::span<const OpGroup> groups, const GroupRun& run,
                             std::vector<Launch>* launches) const {
  const std::span<const OpGroup> earlier = groups.first(groups.size() - 1);
  const AttentionTensors tensors = MakeAttention(groups.back());
  RotateStore before = MakeRotateStore(earlier.back());
  if (run.norms) SetNorms(earlier.first(2), earlier.back(), &before);
  const bool along = CanAttendAlong(tensors, before, PositionsOf(graph_, tensors, params_), shape_);
  for (size_t i = 0; !along && i < earlier.size(); ++i) {
    const size_t first = launches->size();
    AddGroup(earlier[i], {}, launches);
    for (size_t j = first; j < launches->size(); ++j) {
      (*launches)[j].label = backends::GroupName(graph_, earlier[i]);
    }
  }
  AddAttention(groups.back(), along ? &before : nullptr, launches);
}

void OpLaunches::SetNorms(std::span<const OpGroup> norms, const OpGroup& rotation,
                          RotateStore* work) const {
  const bool swapped = backends::RotatesKFirst(graph_, rotation);
  const sdk::Op &q = OpAt(norms[swapped ? 1 : 0], 0), &k = OpAt(norms[swapped ? 0 : 1], 0);
  work->q = In(q, 0);
  work->q_norm = {In(q, 1), q.Attr<trine_norm_attr>().eps};
  work->k = In(k, 0);
  work->k_norm = {In(k, 1), k.Attr<trine_norm_attr>().eps};
}

Norm OpLaunches::MakeNorm(const OpGroup& group, bool added) const {
  const sdk::Op& op = OpAt(group, group.count - 1);
  Norm norm;
  norm.centred = op.kind == TRINE_OP_LAYER_NORM;
  norm.eps = op.Attr<trine_norm_attr>().eps;
  norm.x = In(op, 0);
  norm.weight = In(op, 1);
  norm.bias = In(op, 2);
  const Tensor y = Out(op, 0);
  if (group.writes) norm.y = y;
  if (group.quantizes) norm.quantized = Quantized(y.dims[0], y.rows());
  if (group.count == 2 && !added) {
    const sdk::Op& add = OpAt(group, 0);
    norm.x = In(add, 0);
    norm.addend = In(add, 1);
    norm.sum = Out(add, 0);
  }
  return norm;
}

Launch OpLaunches::MakeGlu(const OpGroup& group) const {
  const sdk::Op& op = OpAt(group, 0);
  const Tensor y = Out(op, 0);
  QuantizedColumns quantized;
  if (group.quantizes) quantized = Quantized(y.dims[0], y.rows());
  return GluLaunch(In(op, 0), In(op, 1), backends::GluParamsOf(op), group.writes ? y : Tensor{},
                   quantized);
}

Launch OpLaunches::MakeSimple(const sdk::Op& op) const {
  switch (op.kind) {
    case TRINE_OP_COPY:
      return CopyLaunch(In(op, 0), Out(op, 0));
    case TRINE_OP_GATHER_ROWS:
      return GatherRowsLaunch(In(op, 0), In(op, 1), Out(op, 0));
    case TRINE_OP_ROPE:
      return RopeLaunch(In(op, 0), In(op, 1), backends::RopeModeOf(op), Out(op, 0));
    case TRINE_OP_KV_STORE:
      return KvStoreLaunch(In(op, 0), In(op, 1), Out(op, 0));
    case TRINE_OP_GLU:
      return GluLaunch(In(op, 0), In(op, 1), backends::GluParamsOf(op), Out(op, 0), {});
    case TRINE_OP_ACTIVATION:
      return ActivationLaunch(In(op, 0), backends::ActivationOf(op), Out(op, 0));
    case TRINE_OP_ADD:
      return AddLaunch(In(op, 0), In(op, 1), Out(op, 0));
    case TRINE_OP_MUL:
      return MulLaunch(In(op, 0), In(op, 1), Out(op, 0));
    case TRINE_OP_SCALE:
      return ScaleLaunch(In(op, 0), op.Attr<trine_scale_attr>().scale, Out(op, 0));
    case TRINE_OP_SOFTCAP:
      return SoftcapLaunch(In(op, 0), op.Attr<trine_scale_attr>().scale, Out(op, 0));
    case TRINE_OP_MOE_ROUTE:
      return MoeRouteLaunch(In(op, 0), In(op, 1), backends::RouteParamsOf(op), Out(op, 0),
                            Out(op, 1));
    case TRINE_OP_MOE_COMBINE:
      return MoeCombineLaunch(In(op, 0), In(op, 1), Out(op, 0));
    default:
      return TopKLaunch(In(op, 0), Out(op, 0), Out(op, 1));
  }
}

RotateStore OpLaunches::MakeRotateStore(const OpGroup& group) const {
  const bool rotates = group.kind != Kind::kStore, stores = group.kind != Kind::kRotate;
  RotateStore work;
  if (rotates) {
    const bool swapped = backends::RotatesKFirst(graph_, group);
    const sdk::Op &q = OpAt(group, swapped ? 1 : 0), &k = OpAt(group, swapped ? 0 : 1);
    work.mode = backends::RopeModeOf(q);
    work.table = In(q, 1);
    work.q = In(q, 0);
    work.rotated_q = Out(q, 0);
    work.k = In(k, 0);
    if (group.writes) work.rotated_k = Out(k, 0);
  }
  if (stores) {
    const uint32_t first = rotates ? 2 : 0;
    const sdk::Op& k = OpAt(group, first);
    const sdk::Op& v = OpAt(group, first + 1);
    if (!rotates) work.k = In(k, 0);
    work.slots = In(k, 1);
    work.v = In(v, 0);
    work.key_cache = Out(k, 0);
    work.value_cache = Out(v, 0);
  }
  return work;
}

void OpLaunches::AddRotateStore(const OpGroup& group, std::vector<Launch>* launches) const {
  const RotateStore work = MakeRotateStore(group);
  if (CanRotateStore(work)) {
    launches->push_back(RotateStoreLaunch(work));
    return;
  }
  // Rotates everything first, then stores it.
  RotateStore rotated = work, stored = work;
  rotated.key_cache = rotated.v = rotated.value_cache = rotated.slots = {};
  stored.table = stored.q = stored.rotated_q = stored.rotated_k = {};
  stored.k = work.rotated_k;
  launches->push_back(RotateStoreLaunch(rotated));
  launches->push_back(RotateStoreLaunch(stored));
}

void OpLaunches::AddGroup(const OpGroup& group, const GroupRun& run,
                          std::vector<Launch>* launches) const {
  const sdk::Op& op = OpAt(group, 0);
  switch (group.kind) {
    case Kind::kNorm:
      launches->push_back(NormLaunch(MakeNorm(group, run.added)));
      break;
    case Kind::kGlu:
      launches->push_back(MakeGlu(group));
      break;
    case Kind::kRotate:
    case Kind::kStore:
    case Kind::kRotateStore:
      AddRotateStore(group, launches);
      break;
    case Kind::kAttention:
      AddAttention(group, nullptr, launches);
      break;
    case Kind::kAlone:
      if (IsProduct(op.kind)) {
        AddProducts({&group, 1}, run, launches);
      } else if (op.kind == TRINE_OP_ATTENTION) {
        AddAttention(group, nullptr, launches);
      } else {
        launches->push_back(MakeSimple(op));
      }
  }
}

void OpLaunches::Add(std::span<const OpGroup> groups, const GroupRun& run,
                     std::vector<Launch>* launches) const {
  const size_t before = launches->size();
  if (run.attends) {
    AddAttended(groups.subspan(run.first, run.count), run, launches);
  } else if (run.joined()) {
    AddProducts(groups.subspan(run.first, run.count), run, launches);
  } else if (!run.added || groups[run.first].count > 1) {
    AddGroup(groups[run.first], run, launches);
  }
  for (size_t i = before; i < launches->size(); ++i) {
    if ((*launches)[i].label == nullptr) (*launches)[i].label = RunName(graph_, groups, run);
  }
}

}  // namespace trine::hip
