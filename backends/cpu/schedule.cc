#include "backends/cpu/schedule.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "backends/common/op_attributes.h"
#include "backends/cpu/op_run.h"
#include "kernels/cpu/levels/activations.h"

namespace trine::cpu {
namespace {

// How many places there are for quantised activations. With two, one is filled while the other is
// read.
constexpr uint32_t kPlaces = 2;
constexpr uint64_t kPlaceAlignment = 64;
constexpr int64_t kMostRows = int64_t{1} << 32;
constexpr uint64_t kMostScratch = uint64_t{1} << 46;

// The fewest parts per worker. Larger parts save a barrier but are harder to share out evenly.
constexpr int64_t kPartsPerWorker = 4;

// Returns false if the size is beyond all bounds.
bool ActivationBytes(const sdk::Graph& graph, uint32_t tensor, const std::vector<int64_t>& params,
                     uint64_t* bytes) {
  const sdk::Dims dims = sdk::ResolveDims(graph.tensors[tensor], params.data());
  uint64_t total = sizeof(cpu_kernels::ActivationChunk);
  int64_t rows = 1;
  for (size_t i = 1; i < dims.size(); ++i) {
    if (__builtin_mul_overflow(rows, dims[i], &rows)) return false;
  }
  if (rows > kMostRows) return false;
  constexpr auto kMostChunks =
      static_cast<int64_t>(kMostScratch / sizeof(cpu_kernels::ActivationChunk));
  if (cpu_kernels::ActivationChunks(dims[0]) >
      kMostChunks / (rows + cpu_kernels::kInterleavedRows)) {
    return false;
  }
  const auto chunks = static_cast<uint64_t>(cpu_kernels::ActivationChunksOf(rows, dims[0]));
  if (__builtin_mul_overflow(total, chunks, &total)) return false;
  *bytes = total;
  return total <= kMostScratch;
}

template <class T>
void Append(const std::vector<T>& from, std::vector<T>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

class Scheduler {
 public:
  Scheduler(const sdk::Graph& graph, const ScheduleFor& whom)
      : graph_(graph),
        workers_(whom.workers),
        quantizes_(whom.quantizes),
        experts_apart_(whom.experts_apart),
        params_(graph.MaxParams()) {}

  std::string Run(Schedule* schedule) {
    uint64_t place_bytes = 0;
    for (const sdk::Op& op : graph_.ops) {
      if (!NeedsActivations(op)) continue;
      uint64_t bytes = 0;
      if (!ActivationBytes(graph_, op.in[1], params_, &bytes)) {
        return "the activations of a matrix product are too large to quantise";
      }
      place_bytes = std::max(place_bytes, bytes);
    }
    place_bytes_ = (place_bytes + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
    for (uint32_t i = 0; i < graph_.ops.size(); ++i) AddOp(i);
    schedule->partials = kPlaces * place_bytes_;
    schedule->scratch_bytes = schedule->partials + PartialBytes(&schedule->attention);
    schedule->steps = std::move(steps_);
    return "";
  }

 private:
  // One way of splitting a call.
  struct Cut {
    Split split = Split::kShares;
    Accesses accesses;
    int64_t unit = 0;    // kColumns
    int64_t values = 0;  // kColumns
    uint32_t row_tensor = 0;
    int64_t rows_dim = 0;  // kRows: number of rows, as the graph has it
  };
  // A quantised copy of a tensor.
  struct Copy {
    uint32_t tensor = 0;
    bool for_experts = false;  // in the order for experts, if that is another order
  };
  // The memory that the calls of a chain of the last step touch.
  struct OpenChain {
    Accesses accesses;
    int64_t rows_dim = 0;
  };

  bool NeedsActivations(const sdk::Op& op) const {
    return quantizes_ && backends::IsQuantizedProduct(graph_, op);
  }

  // Returns the bytes for the attention op that needs the most. All attention ops share them.
  uint64_t PartialBytes(AttentionNeed* most) const {
    for (const sdk::Op& op : graph_.ops) {
      const AttentionNeed need = NeedOfAttention(graph_, op, params_);
      most->partial_floats = std::max(most->partial_floats, need.partial_floats);
      most->pairs = std::max(most->pairs, need.pairs);
    }
    return static_cast<uint64_t>(most->partial_floats) * sizeof(float);
  }

  // The space after the last place, which all attention ops share.
  Access Partials() const {
    return {static_cast<uint32_t>(graph_.slots.size()) + kPlaces, 0, 1, true, std::nullopt};
  }

  Access Place(uint32_t place, bool writes) const {
    return {static_cast<uint32_t>(graph_.slots.size()) + place, 0, place_bytes_, writes,
            std::nullopt};
  }

  void AddOp(uint32_t index) {
    const sdk::Op& op = graph_.ops[index];
    Call call{Call::Kind::kOp, index, kNoActivations};
    std::optional<Access> activations;
    if (NeedsActivations(op)) {
      const uint32_t place = FindOrQuantize(index);
      call.activations = place * place_bytes_;
      activations = Place(place, false);
    }
    std::vector<Cut> cuts;
    for (Split split : {Split::kColumns, Split::kRows, Split::kShares}) {
      auto accesses = AccessesOf(graph_, op, split, params_, activations ? &*activations : nullptr);
      if (accesses && op.kind == TRINE_OP_ATTENTION) accesses->push_back(Partials());
      if (accesses) cuts.push_back(CutOf(op, split, *std::move(accesses)));
    }
    // A call alone is split by rows, unless its rows are long, or many for each token.
    const bool wide = backends::IsProduct(op.kind) || op.kind == TRINE_OP_GLU ||
                      op.kind == TRINE_OP_ACTIVATION || SplitsByHeads(graph_, op);
    if (!wide && cuts.front().split == Split::kColumns) {
      std::rotate(cuts.begin(), cuts.begin() + 1, cuts.end() - 1);
    }
    const Accesses touched = cuts.back().accesses;
    Add(call, std::move(cuts));
    Step& step = steps_.back();
    step.big |= backends::IsProduct(op.kind) || op.kind == TRINE_OP_ATTENTION;
    // Drops copies of memory that the op changes.
    for (std::optional<Copy>& held : held_) {
      if (held && Meet(touched, {AccessTo(graph_, held->tensor, Split::kShares, false, params_)})) {
        held.reset();
      }
    }
  }

  Cut CutOf(const sdk::Op& op, Split split, Accesses accesses) const {
    Cut cut;
    cut.split = split;
    if (split == Split::kRows) {
      cut.row_tensor = op.out[0];
      cut.rows_dim = accesses.back().pattern->dims[0];
    }
    if (split == Split::kColumns) {
      const trine_tensor& t = graph_.tensors[SplitsByHeads(graph_, op) ? op.in[0] : op.out[0]];
      const bool by_heads = SplitsByHeads(graph_, op);
      cut.unit = by_heads ? t.dims[0] : kFeatureMultiple;
      cut.values = by_heads ? t.dims[0] * t.dims[1] : t.dims[0];
    }
    cut.accesses = std::move(accesses);
    return cut;
  }

  // Returns the place that holds the op's activations. Adds a call that puts them there if needed.
  uint32_t FindOrQuantize(uint32_t index) {
    const uint32_t x = graph_.ops[index].in[1];
    const bool for_experts = experts_apart_ && graph_.ops[index].kind == TRINE_OP_MOE_MATMUL;
    for (uint32_t place = 0; place < kPlaces; ++place) {
      const std::optional<Copy>& held = held_[place];
      if (held && held->for_experts == for_experts &&
          sdk::SameView(graph_.tensors[held->tensor], graph_.tensors[x])) {
        return place;
      }
    }
    const uint32_t place = next_place_;
    next_place_ = (next_place_ + 1) % kPlaces;
    held_[place] = {x, for_experts};
    std::vector<Cut> cuts(1);
    cuts[0].accesses = {AccessTo(graph_, x, Split::kShares, false, params_), Place(place, true)};
    if (const auto rows = QuantizeByRows(x, place)) cuts.push_back(*rows);
    Add({Call::Kind::kQuantize, index, place * place_bytes_}, std::move(cuts));
    return place;
  }

  std::optional<Cut> QuantizeByRows(uint32_t x, uint32_t place) const {
    Cut cut;
    cut.split = Split::kRows;
    cut.accesses = {AccessTo(graph_, x, Split::kRows, false, params_), Place(place, true)};
    if (!cut.accesses[0].pattern) return std::nullopt;
    const trine_tensor& t = graph_.tensors[x];
    // Describes interleaved rows as if they followed each other. This changes no answer for rows of
    // the same length and number, because each row has its own bytes either way.
    Pattern pattern;
    pattern.bytes = cpu_kernels::ActivationChunks(t.dims[0]) *
                    static_cast<int64_t>(sizeof(cpu_kernels::ActivationChunk)) *
                    (t.rank == 3 ? t.dims[1] : 1);
    pattern.stride = pattern.bytes;
    pattern.dims[0] = cut.accesses[0].pattern->dims[0];
    cut.accesses[1].pattern = pattern;
    cut.row_tensor = x;
    cut.rows_dim = pattern.dims[0];
    return cut;
  }

  // `cuts` holds the splits that the call can have, beginning with its split if it is alone.
  void Add(const Call& call, std::vector<Cut> cuts) {
    std::vector<size_t> met;
    for (size_t i = 0; i < open_.size(); ++i) {
      if (Meet(open_[i].accesses, cuts.front().accesses)) met.push_back(i);
    }
    for (const Cut& cut : cuts) {
      if (!met.empty() && Join(call, cut, met)) return;
    }
    if (steps_.empty() || !met.empty()) {
      steps_.emplace_back();
      open_.clear();
    }
    Cut& cut = cuts.front();
    steps_.back().chains.push_back(
        {cut.split, cut.unit, cut.values, cut.row_tensor, WeightBytes(call), {call}});
    open_.push_back({std::move(cut.accesses), cut.rows_dim});
  }

  // Joins the chains `met` and the call into one chain at the place of the first one. Returns false
  // if their splits differ, or if a part of the call shares memory with another part of the chains.
  bool Join(const Call& call, const Cut& cut, const std::vector<size_t>& met) {
    std::vector<Chain>& chains = steps_.back().chains;
    int64_t unit = cut.unit;
    bool coarser = false;
    for (size_t i : met) {
      if (chains[i].split == Split::kShares || chains[i].split != cut.split) return false;
      if (chains[i].values != cut.values || open_[i].rows_dim != cut.rows_dim) return false;
      if (!MeetInParts(open_[i].accesses, cut.accesses, cut.split)) return false;
      if (cut.split == Split::kColumns) unit = std::lcm(unit, chains[i].unit);
    }
    for (size_t i : met) coarser |= chains[i].unit != unit;
    if (coarser && !CanBeCoarser(met[0], unit)) return false;
    for (size_t i = met.size() - 1; i > 0; --i) MergeIntoFormer(met[i - 1], met[i]);
    Chain& chain = chains[met[0]];
    chain.unit = unit;
    chain.calls.push_back(call);
    chain.weight_bytes += WeightBytes(call);
    Append(cut.accesses, &open_[met[0]].accesses);
    return true;
  }

  // Appends the later chain's calls to the earlier chain's. The two do not touch each other's
  // memory.
  void MergeIntoFormer(size_t former, size_t later) {
    std::vector<Chain>& chains = steps_.back().chains;
    Append(chains[later].calls, &chains[former].calls);
    chains[former].weight_bytes += chains[later].weight_bytes;
    Append(open_[later].accesses, &open_[former].accesses);
    chains.erase(chains.begin() + static_cast<ptrdiff_t>(later));
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(later));
  }

  // Returns whether the work still has enough parts to share out if the parts of a chain become
  // larger.
  bool CanBeCoarser(size_t index, int64_t unit) const {
    const std::vector<Chain>& chains = steps_.back().chains;
    if (chains[index].values % unit != 0) return false;
    int64_t parts = chains[index].values / unit;
    for (size_t i = 0; i < chains.size(); ++i) {
      if (i != index && chains[i].split == Split::kColumns) {
        parts += chains[i].values / std::max(unit, chains[i].unit);
      }
    }
    return workers_ == 1 || parts >= kPartsPerWorker * workers_;
  }

  uint64_t WeightBytes(const Call& call) const {
    const sdk::Op& op = graph_.ops[call.op];
    if (call.kind != Call::Kind::kOp || !backends::IsProduct(op.kind)) return 0;
    const trine_tensor& w = graph_.tensors[op.in[0]];
    const sdk::Dims dims = sdk::ResolveDims(w, params_.data());
    const auto matrix = static_cast<uint64_t>(sdk::ValueBytes(w.dtype, dims[0]) * dims[1]);
    if (op.kind != TRINE_OP_MOE_MATMUL) return matrix;
    // The experts of a token differ from each other.
    const int64_t used = graph_.tensors[op.out[0]].dims[1];
    return matrix *
           static_cast<uint64_t>(std::clamp<int64_t>(used, 1, std::max<int64_t>(dims[2], 1)));
  }

  const sdk::Graph& graph_;
  const int64_t workers_;
  const bool quantizes_;
  const bool experts_apart_;
  const std::vector<int64_t> params_;
  uint64_t place_bytes_ = 0;
  uint32_t next_place_ = 0;
  std::array<std::optional<Copy>, kPlaces> held_;  // the copies in the places
  std::vector<Step> steps_;
  std::vector<OpenChain> open_;  // the chains of the last step
};

}  // namespace

std::string MakeSchedule(const sdk::Graph& graph, const ScheduleFor& whom, Schedule* schedule) {
  return Scheduler(graph, whom).Run(schedule);
}

}  // namespace trine::cpu
