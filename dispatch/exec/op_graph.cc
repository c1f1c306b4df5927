#include "dispatch/exec/op_graph.h"

#include <algorithm>
#include <utility>

#include "trine/backend_sdk.h"

namespace trine {
namespace {

constexpr size_t kNever = static_cast<size_t>(-1);

// The first and last op that touch a temporary.
struct Life {
  size_t first = kNever;
  size_t last = 0;
};

// Returns the index of the free slot to take for `bytes`: the smallest that is large enough, else
// the largest, which then grows.
size_t PickFree(const std::vector<SlotId>& free, const std::vector<trine_slot>& slots,
                uint64_t bytes) {
  size_t best = 0;
  for (size_t i = 1; i < free.size(); ++i) {
    const uint64_t have = slots[free[i]].bytes;
    const uint64_t best_have = slots[free[best]].bytes;
    const bool fits = have >= bytes;
    const bool best_fits = best_have >= bytes;
    if (fits != best_fits ? fits : fits ? have < best_have : have > best_have) best = i;
  }
  return best;
}

}  // namespace

int64_t OpGraph::AddParam(uint32_t kind, int64_t min, int64_t max) {
  params_.push_back({kind, 0, min, max});
  return -static_cast<int64_t>(params_.size());
}

uint64_t OpGraph::Bytes(TensorId id) const {
  const trine_tensor& t = tensors_[id];
  // No device has so many bytes, and sums of such sizes do not overflow.
  constexpr int64_t kTooMany = int64_t{1} << 56;
  int64_t bytes = sdk::ValueBytes(t.dtype, MaxDim(t.dims[0]));
  for (uint32_t i = 1; i < t.rank; ++i) {
    if (__builtin_mul_overflow(bytes, MaxDim(t.dims[i]), &bytes)) return kTooMany;
  }
  return static_cast<uint64_t>(std::min(bytes, kTooMany));
}

TensorId OpGraph::AddTensor(uint32_t role, uint32_t dtype, const Shape& shape, uint64_t offset,
                            uint32_t alternates) {
  trine_tensor t{};
  t.dtype = dtype;
  t.rank = static_cast<uint32_t>(shape.size());
  t.slot = static_cast<SlotId>(slots_.size());
  t.offset = offset;
  std::copy(shape.begin(), shape.end(), t.dims);
  const auto id = static_cast<TensorId>(tensors_.size());
  tensors_.push_back(t);
  slots_.push_back({role, alternates, 0});
  slots_.back().bytes = offset + Bytes(id);
  return id;
}

TensorId OpGraph::AddReshape(TensorId tensor, const Shape& shape) {
  trine_tensor t = tensors_[tensor];
  t.rank = static_cast<uint32_t>(shape.size());
  std::fill(std::begin(t.dims), std::end(t.dims), 0);
  std::copy(shape.begin(), shape.end(), t.dims);
  tensors_.push_back(t);
  return static_cast<TensorId>(tensors_.size() - 1);
}

TensorId OpGraph::AddView(TensorId tensor, const Shape& shape, const Shape& strides,
                          uint64_t offset) {
  const TensorId id = AddReshape(tensor, shape);
  std::copy(strides.begin(), strides.end(), tensors_[id].strides);
  tensors_[id].offset += offset;
  return id;
}

void OpGraph::SetOffset(TensorId id, uint64_t offset) {
  tensors_[id].offset = offset;
  slots_[tensors_[id].slot].bytes = offset + Bytes(id);
}

void OpGraph::SetAlternates(TensorId id, uint32_t alternates) {
  slots_[tensors_[id].slot].alternates = alternates;
}

void OpGraph::SetLayout(TensorId id, uint64_t layout, uint64_t bytes) {
  tensors_[id].layout = layout;
  tensors_[id].offset = 0;
  slots_[tensors_[id].slot].bytes = bytes;
}

bool OpGraph::AloneInSlot(TensorId id) const {
  return std::count_if(tensors_.begin(), tensors_.end(),
                       [&](const trine_tensor& t) { return t.slot == tensors_[id].slot; }) == 1;
}

std::vector<uint32_t> OpGraph::Readers(TensorId id) const {
  std::vector<uint32_t> readers;
  for (uint32_t i = 0; i < ops_.size(); ++i) {
    const TensorId* end = ops_[i].in + ops_[i].n_in;
    if (std::find(ops_[i].in, end, id) != end) readers.push_back(i);
  }
  return readers;
}

void OpGraph::Append(uint32_t kind, std::vector<TensorId> in, std::vector<TensorId> out,
                     const void* attr, size_t attr_bytes) {
  trine_op op{};
  op.kind = kind;
  op.n_in = static_cast<uint32_t>(in.size());
  op.n_out = static_cast<uint32_t>(out.size());
  op.in = operands_.emplace_back(std::move(in)).data();
  op.out = operands_.emplace_back(std::move(out)).data();
  if (attr != nullptr) {
    const auto* bytes = static_cast<const std::byte*>(attr);
    op.attr = attributes_.emplace_back(bytes, bytes + attr_bytes).data();
  }
  ops_.push_back(op);
}

void OpGraph::AddOpLike(const trine_op& op, std::vector<TensorId> in, std::vector<TensorId> out) {
  uint32_t attr_bytes = 0;  // every attribute struct begins with its size
  if (op.attr != nullptr) std::memcpy(&attr_bytes, op.attr, sizeof(attr_bytes));
  Append(op.kind, std::move(in), std::move(out), op.attr, attr_bytes);
}

void OpGraph::Finish() {
  std::vector<Life> lives(slots_.size());
  for (size_t i = 0; i < ops_.size(); ++i) {
    const auto touch = [&](TensorId id) {
      if (id == TRINE_NONE) return;
      Life& life = lives[SlotOf(id)];
      if (life.first == kNever) life.first = i;
      life.last = i;
    };
    std::for_each(ops_[i].in, ops_[i].in + ops_[i].n_in, touch);
    std::for_each(ops_[i].out, ops_[i].out + ops_[i].n_out, touch);
  }
  // Number the slots again: a temporary that reuses the memory of another needs no slot.
  std::vector<trine_slot> kept;
  std::vector<SlotId> renamed(slots_.size(), TRINE_NONE);
  const auto keep = [&](SlotId slot) {
    renamed[slot] = static_cast<SlotId>(kept.size());
    kept.push_back(slots_[slot]);
  };
  for (SlotId s = 0; s < slots_.size(); ++s) {
    if (slots_[s].role != TRINE_ROLE_TEMP) keep(s);
  }
  std::vector<std::vector<SlotId>> begins(ops_.size()), ends(ops_.size());
  for (SlotId s = 0; s < slots_.size(); ++s) {
    if (slots_[s].role != TRINE_ROLE_TEMP || lives[s].first == kNever) continue;
    begins[lives[s].first].push_back(s);
    ends[lives[s].last].push_back(s);
  }
  std::vector<SlotId> free;
  for (size_t i = 0; i < ops_.size(); ++i) {
    for (SlotId s : begins[i]) {
      if (free.empty()) {
        keep(s);
        continue;
      }
      const size_t pick = PickFree(free, kept, slots_[s].bytes);
      renamed[s] = free[pick];
      kept[free[pick]].bytes = std::max(kept[free[pick]].bytes, slots_[s].bytes);
      free.erase(free.begin() + static_cast<ptrdiff_t>(pick));
    }
    for (SlotId s : ends[i]) free.push_back(renamed[s]);
  }
  for (trine_tensor& t : tensors_) {
    if (renamed[t.slot] == TRINE_NONE) {  // no op touches it: an empty tensor in any slot
      const uint32_t dtype = t.dtype;
      t = trine_tensor{};
      t.dtype = dtype;
      t.rank = 1;
    } else {
      t.slot = renamed[t.slot];
    }
  }
  slots_ = std::move(kept);
}

trine_graph OpGraph::View() const {
  trine_graph g{};
  g.struct_size = sizeof(g);
  g.numerics = numerics_;
  g.n_slots = static_cast<uint32_t>(slots_.size());
  g.slot_stride = sizeof(trine_slot);
  g.n_tensors = static_cast<uint32_t>(tensors_.size());
  g.tensor_stride = sizeof(trine_tensor);
  g.n_ops = static_cast<uint32_t>(ops_.size());
  g.op_stride = sizeof(trine_op);
  g.n_params = static_cast<uint32_t>(params_.size());
  g.param_stride = sizeof(trine_param);
  g.slots = slots_.data();
  g.tensors = tensors_.data();
  g.ops = ops_.data();
  g.params = params_.data();
  return g;
}

}  // namespace trine
