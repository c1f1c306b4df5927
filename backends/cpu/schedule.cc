#include "backends/cpu/schedule.h"

#include <algorithm>
#include <array>
#include <optional>

#include "kernels/cpu/activations.h"
#include "kernels/quant/block_types.h"

namespace trine::cpu {
namespace {

// Two places for quantised activations, used in turn: the next can be filled while the one before
// is still read.
constexpr uint32_t kPlaces = 2;
constexpr uint64_t kPlaceAlignment = 64;
constexpr uint64_t kMostScratch = uint64_t{1} << 46;

// A run of bytes of a slot, or of a place behind the last slot.
struct Extent {
  uint32_t space;
  uint64_t begin, end;

  bool Meets(const Extent& other) const {
    return space == other.space && begin < other.end && other.begin < end;
  }
};

using Extents = std::vector<Extent>;

bool Meet(const Extents& a, const Extents& b) {
  return std::any_of(a.begin(), a.end(), [&](const Extent& x) {
    return std::any_of(b.begin(), b.end(), [&](const Extent& y) { return x.Meets(y); });
  });
}

// All bytes from the tensor's first to its last, whatever lies in its gaps.
Extent ExtentOf(const sdk::Graph& graph, uint32_t tensor, const std::vector<int64_t>& params) {
  const trine_tensor& t = graph.tensors[tensor];
  const sdk::Dims dims = sdk::ResolveDims(t, params.data());
  const sdk::Dims strides = sdk::ResolveStrides(t, dims);
  int64_t bytes = sdk::ValueBytes(t.dtype, dims[0]);
  for (size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] == 0) return {t.slot, t.offset, t.offset};
    bytes += (dims[i] - 1) * strides[i];
  }
  return {t.slot, t.offset, t.offset + static_cast<uint64_t>(bytes)};
}

// What has been read and written since the last barrier.
class Hazards {
 public:
  // Whether a step with these extents must wait for those before it; it is then among them.
  bool Add(const Extents& reads, const Extents& writes) {
    const bool wait = Meet(reads, writes_) || Meet(writes, reads_) || Meet(writes, writes_);
    if (wait) {
      reads_.clear();
      writes_.clear();
    }
    reads_.insert(reads_.end(), reads.begin(), reads.end());
    writes_.insert(writes_.end(), writes.begin(), writes.end());
    return wait;
  }

 private:
  Extents reads_, writes_;
};

bool SameView(const trine_tensor& a, const trine_tensor& b) {
  return a.dtype == b.dtype && a.rank == b.rank && a.slot == b.slot && a.offset == b.offset &&
         std::equal(a.dims, a.dims + a.rank, b.dims) &&
         std::equal(a.strides, a.strides + a.rank, b.strides);
}

bool NeedsActivations(const sdk::Graph& graph, const sdk::Op& op) {
  return (op.kind == TRINE_OP_MATMUL || op.kind == TRINE_OP_MOE_MATMUL) &&
         quant::IsQuantized(static_cast<quant::Type>(graph.tensors[op.in[0]].dtype));
}

// False when the size is out of all bounds.
bool ActivationBytes(const sdk::Graph& graph, uint32_t tensor, const std::vector<int64_t>& params,
                     uint64_t* bytes) {
  const sdk::Dims dims = sdk::ResolveDims(graph.tensors[tensor], params.data());
  uint64_t total = static_cast<uint64_t>(cpu_kernels::ActivationBytes(dims[0]));
  for (size_t i = 1; i < dims.size(); ++i) {
    if (__builtin_mul_overflow(total, static_cast<uint64_t>(dims[i]), &total)) return false;
  }
  *bytes = total;
  return total <= kMostScratch;
}

class Scheduler {
 public:
  explicit Scheduler(const sdk::Graph& graph) : graph_(graph), params_(graph.MaxParams()) {}

  std::string Run(Schedule* schedule) {
    uint64_t place_bytes = 0;
    for (const sdk::Op& op : graph_.ops) {
      if (!NeedsActivations(graph_, op)) continue;
      uint64_t bytes = 0;
      if (!ActivationBytes(graph_, op.in[1], params_, &bytes)) {
        return "the activations of a matrix product are too large to quantise";
      }
      place_bytes = std::max(place_bytes, bytes);
    }
    place_bytes_ = (place_bytes + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
    schedule->partials = kPlaces * place_bytes_;
    schedule->scratch_bytes = schedule->partials + PartialBytes(&schedule->attention);
    for (uint32_t i = 0; i < graph_.ops.size(); ++i) AddOp(i, schedule);
    return "";
  }

 private:
  // What the attention op that asks for most needs, for all of them in turn.
  uint64_t PartialBytes(AttentionNeed* most) const {
    for (const sdk::Op& op : graph_.ops) {
      const AttentionNeed need = NeedOfAttention(graph_, op, params_);
      most->partial_floats = std::max(most->partial_floats, need.partial_floats);
      most->pairs = std::max(most->pairs, need.pairs);
    }
    return static_cast<uint64_t>(most->partial_floats) * sizeof(float);
  }

  // Behind the last place, shared by all attention ops.
  Extent Partials() const { return {static_cast<uint32_t>(graph_.slots.size()) + kPlaces, 0, 1}; }

  Extent Place(uint32_t place) const {
    return {static_cast<uint32_t>(graph_.slots.size()) + place, 0, place_bytes_};
  }

  void AddOp(uint32_t index, Schedule* schedule) {
    const sdk::Op& op = graph_.ops[index];
    Extents reads, writes;
    for (uint32_t t : op.in) {
      if (t != TRINE_NONE) reads.push_back(ExtentOf(graph_, t, params_));
    }
    for (uint32_t t : op.out) writes.push_back(ExtentOf(graph_, t, params_));
    Step step{Step::Kind::kOp, index, false, kNoActivations};
    if (NeedsActivations(graph_, op)) {
      const uint32_t place = FindOrQuantize(index, schedule);
      step.activations = place * place_bytes_;
      reads.push_back(Place(place));
    }
    if (op.kind == TRINE_OP_ATTENTION) writes.push_back(Partials());
    step.barrier = hazards_.Add(reads, writes);
    schedule->steps.push_back(step);
    // What was quantised from memory that changes is no copy of it any more.
    for (std::optional<uint32_t>& held : held_) {
      if (held && Meet({ExtentOf(graph_, *held, params_)}, writes)) held.reset();
    }
  }

  // The place that holds the op's activations, after a step that puts them there if need be.
  uint32_t FindOrQuantize(uint32_t index, Schedule* schedule) {
    const uint32_t x = graph_.ops[index].in[1];
    for (uint32_t place = 0; place < kPlaces; ++place) {
      if (held_[place] && SameView(graph_.tensors[*held_[place]], graph_.tensors[x])) return place;
    }
    const uint32_t place = next_place_;
    next_place_ = (next_place_ + 1) % kPlaces;
    held_[place] = x;
    Step step{Step::Kind::kQuantize, index, false, place * place_bytes_};
    step.barrier = hazards_.Add({ExtentOf(graph_, x, params_)}, {Place(place)});
    schedule->steps.push_back(step);
    return place;
  }

  const sdk::Graph& graph_;
  const std::vector<int64_t> params_;
  uint64_t place_bytes_ = 0;
  uint32_t next_place_ = 0;
  std::array<std::optional<uint32_t>, kPlaces> held_;  // the tensor whose copy a place holds
  Hazards hazards_;
};

}  // namespace

std::string MakeSchedule(const sdk::Graph& graph, Schedule* schedule) {
  return Scheduler(graph).Run(schedule);
}

}  // namespace trine::cpu
