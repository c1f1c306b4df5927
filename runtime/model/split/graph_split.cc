#include "runtime/model/split/graph_split.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace trine {
namespace {

constexpr TensorId SegmentIo::*kInputs[] = {
    &SegmentIo::tokens,        &SegmentIo::hidden_in,  &SegmentIo::rope,
    &SegmentIo::rope_windowed, &SegmentIo::kv_slots,   &SegmentIo::block_table,
    &SegmentIo::q_offsets,     &SegmentIo::kv_lengths, &SegmentIo::output_rows};

class Splitter {
 public:
  Splitter(const SegmentGraph& whole, const std::vector<OpOwners>& owners,
           const std::vector<bool>& sees_rows)
      : whole_(whole),
        graph_(whole.graph),
        owners_(owners),
        sees_rows_(sees_rows),
        schedule_(ScheduleOps(whole.graph, owners)),
        is_io_(graph_.slots().size(), false) {}

  GraphSplit Make() {
    for (TensorId id = 0; id < graph_.n_tensors(); ++id) first_.try_emplace(graph_.SlotOf(id), id);
    split_.steps.resize(schedule_.n_steps);
    split_.buffers.resize(sees_rows_.size());
    FindIo();
    FindWholePlaces();
    BuildPieces();
    AddMoves();
    AddInputs();
    ShareBuffers();
    return std::move(split_);
  }

 private:
  struct Life {
    size_t first, last;  // steps
  };

  OpOwners Owners(size_t op) const {
    return owners_[op].empty() ? OpOwners{RowShare{}} : owners_[op];
  }
  bool IsSplit(size_t op) const { return owners_[op].size() > 1; }
  bool IsHosts(size_t op) const { return graph_.op(op).kind == kDivideIds; }
  bool Moves(SlotId slot) const { return graph_.slots()[slot].role != TRINE_ROLE_STATE; }

  // Marks the slots that the host or more than one piece uses.
  void FindIo() {
    std::map<SlotId, std::set<std::pair<size_t, size_t>>> pieces;  // step and device
    const auto touch = [&](size_t op, SlotId slot) {
      for (const RowShare& share : Owners(op)) {
        pieces[slot].emplace(schedule_.steps[op], share.device);
      }
    };
    for (const SlotVersion& version : schedule_.versions) {
      if (!Moves(version.slot)) continue;
      for (const size_t reader : version.readers) touch(reader, version.slot);
      if (version.writer != SlotVersion::kHost) touch(version.writer, version.slot);
      const bool outside = graph_.slots()[version.slot].role == TRINE_ROLE_IO;
      const bool hosts = std::any_of(version.readers.begin(), version.readers.end(),
                                     [&](size_t reader) { return IsHosts(reader); });
      is_io_[version.slot] =
          is_io_[version.slot] || outside || hosts || pieces[version.slot].size() > 1;
    }
  }

  // Adds a place for the whole value on each device that reads it or computes all of it.
  void FindWholePlaces() {
    for (const SlotVersion& version : schedule_.versions) {
      if (!is_io_[version.slot]) continue;
      for (const size_t reader : version.readers) {
        for (const RowShare& share : Owners(reader)) WholePlace(share.device, version.slot);
      }
      if (version.writer == SlotVersion::kHost || IsHosts(version.writer)) continue;
      if (IsSplit(version.writer)) continue;
      WholePlace(Owners(version.writer)[0].device, version.slot);
    }
  }

  size_t WholePlace(size_t device, SlotId slot) {
    const auto [found, is_new] = wholes_.try_emplace({device, slot}, split_.places.size());
    if (is_new) AddPlace(device, graph_.slots()[slot].bytes);
    return found->second;
  }

  size_t AddPlace(size_t device, uint64_t bytes) {
    split_.places.push_back({device, 0, bytes});
    lives_.push_back({schedule_.n_steps, 0});
    return split_.places.size() - 1;
  }

  void Use(size_t place, size_t step) {
    lives_[place].first = std::min(lives_[place].first, step);
    lives_[place].last = std::max(lives_[place].last, step);
  }

  void BuildPieces() {
    std::map<std::pair<size_t, size_t>, std::vector<std::pair<size_t, size_t>>> ops;
    for (size_t op = 0; op < graph_.n_ops(); ++op) {
      if (IsHosts(op)) continue;
      const OpOwners owners = Owners(op);
      for (size_t i = 0; i < owners.size(); ++i) {
        ops[{schedule_.steps[op], owners[i].device}].emplace_back(op, i);
      }
    }
    for (const auto& [where, shares] : ops) {
      split_.steps[where.first].pieces.push_back(split_.pieces.size());
      split_.pieces.push_back(BuildPiece(where.first, where.second, shares));
    }
  }

  GraphPiece BuildPiece(size_t step, size_t device,
                        const std::vector<std::pair<size_t, size_t>>& shares) {
    GraphPiece piece;
    piece.device = device;
    PieceGraph builder(whole_, is_io_, &split_.slices);
    for (const auto& [op, i] : shares) {
      if (!IsSplit(op)) {
        builder.AddOp(op);
        continue;
      }
      const RowShare& share = owners_[op][i];
      const auto whole = wholes_.find({device, graph_.SlotOf(graph_.op(op).out[0])});
      const bool apart = whole == wholes_.end() || !sees_rows_[device];
      const TensorId tensor = builder.AddRows(op, share.begin, share.end, apart);
      size_t place = apart ? 0 : whole->second;
      if (apart) {
        const trine_tensor& y = graph_.tensor(graph_.op(op).out[0]);
        const uint64_t column_bytes =
            graph_.Bytes(graph_.op(op).out[0]) / static_cast<uint64_t>(y.dims[0]);
        place = AddPlace(device, column_bytes * static_cast<uint64_t>(share.end - share.begin));
        Use(place, step);
        piece.io.emplace_back(tensor, place);
      }
      parts_[{op, i}] = {place, share.begin, share.end, !apart};
    }
    for (const auto& [slot, tensor] : builder.io()) {
      const size_t place = wholes_.at({device, slot});
      Use(place, step);
      piece.io.emplace_back(tensor, place);
    }
    piece.graph = builder.Take();
    return piece;
  }

  // Returns the ids that the host divides into those of `version`, and how.
  ValueMove DividedValue(const SlotVersion& version) const {
    const trine_op& op = graph_.op(version.writer);
    const auto read = std::find_if(
        schedule_.versions.begin(), schedule_.versions.end(), [&](const SlotVersion& v) {
          return std::find(v.readers.begin(), v.readers.end(), version.writer) != v.readers.end();
        });
    ValueMove value = ValueOf(*read);
    const auto layer = std::find_if(whole_.divided.begin(), whole_.divided.end(),
                                    [&](const DividedLayer& l) { return l.ids == op.in[0]; });
    value.divided = DividedIds{static_cast<size_t>(layer - whole_.divided.begin()),
                               version.slot == graph_.SlotOf(layer->home_ids)};
    value.id_limit = layer->experts;
    return value;
  }

  // Returns the value of a version as its writer computes it, in parts.
  ValueMove ValueOf(const SlotVersion& version) const {
    if (IsHosts(version.writer)) return DividedValue(version);
    const trine_tensor& t = graph_.tensor(first_.at(version.slot));
    ValueMove value;
    value.dtype = t.dtype;
    value.width = t.dims[0];
    value.outer.assign(t.dims + 1, t.dims + t.rank);
    if (!IsSplit(version.writer)) {
      const size_t device = Owners(version.writer)[0].device;
      value.from.push_back({wholes_.at({device, version.slot}), 0, t.dims[0], true});
      return value;
    }
    for (size_t i = 0; i < owners_[version.writer].size(); ++i) {
      value.from.push_back(parts_.at({version.writer, i}));
    }
    return value;
  }

  // Has the host count the ids of chosen experts. Those of divided layers are counted when they are
  // divided.
  void CountIds(const SlotVersion& version, ValueMove* move) const {
    if (move->divided) return;
    for (const RoutedLayer& routed : whole_.routed) {
      if (graph_.SlotOf(routed.ids) != version.slot) continue;
      const bool divided =
          std::any_of(whole_.divided.begin(), whole_.divided.end(),
                      [&](const DividedLayer& layer) { return layer.ids == routed.ids; });
      if (divided) return;
      move->counted = {routed.layer, graph_.slots()[version.slot].role == TRINE_ROLE_IO};
      move->id_limit = routed.experts;
    }
  }

  void AddMoves() {
    for (const SlotVersion& version : schedule_.versions) {
      if (version.writer == SlotVersion::kHost || !is_io_[version.slot]) continue;
      ValueMove move = ValueOf(version);
      for (const size_t reader : version.readers) {
        for (const RowShare& share : Owners(reader)) {
          const size_t place = wholes_.at({share.device, version.slot});
          const bool there = move.from.size() == 1 && move.from[0].place == place;
          const bool known = std::find(move.to.begin(), move.to.end(), place) != move.to.end();
          if (!there && !known) move.to.push_back(place);
        }
        const trine_op& op = graph_.op(reader);
        if (op.kind == TRINE_OP_MOE_MATMUL && !move.divided &&
            graph_.SlotOf(op.in[2]) == version.slot) {
          move.id_limit = graph_.tensor(op.in[0]).dims[2];
        }
      }
      CountIds(version, &move);
      const size_t step = schedule_.steps[version.writer];
      for (const ValuePart& part : move.from) Use(part.place, step);
      for (const size_t place : move.to) Use(place, step);
      const bool hidden = IsHidden(version.slot);
      if (hidden || IsOutput(version.slot)) {
        (hidden ? split_.hidden.emplace() : split_.output) = ValueOf(version);
        for (const ValuePart& part : move.from) Use(part.place, schedule_.n_steps);
      }
      const bool later = std::any_of(version.readers.begin(), version.readers.end(),
                                     [&](size_t reader) { return schedule_.steps[reader] > step; });
      const bool counted = move.counted && move.counted->always;
      if (later || counted) split_.steps[step].moves.push_back(std::move(move));
    }
  }

  bool IsSlotOf(TensorId id, SlotId slot) const {
    return id != TRINE_NONE && graph_.SlotOf(id) == slot;
  }
  bool IsOutput(SlotId slot) const {
    return IsSlotOf(whole_.io.hidden_out, slot) || IsSlotOf(whole_.io.logits, slot) ||
           IsSlotOf(whole_.io.embeddings, slot);
  }
  bool IsHidden(SlotId slot) const {
    return whole_.io.logits != TRINE_NONE && IsSlotOf(whole_.io.embeddings, slot);
  }

  void AddInputs() {
    for (const auto which : kInputs) {
      const TensorId id = whole_.io.*which;
      if (id == TRINE_NONE) continue;
      SplitInput input{which, {}};
      for (const auto& [where, place] : wholes_) {
        if (where.second != graph_.SlotOf(id)) continue;
        Use(place, 0);
        input.places.push_back(place);
      }
      if (!input.places.empty()) split_.inputs.push_back(std::move(input));
    }
  }

  // Assigns buffers to places in the order of their first use. A place gets the smallest free
  // buffer that is large enough. If there is none, it gets the largest free buffer, which grows.
  void ShareBuffers() {
    std::vector<size_t> order(split_.places.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return lives_[a].first < lives_[b].first; });
    std::vector<std::vector<size_t>> busy_until(split_.buffers.size());
    for (const size_t index : order) {
      SplitPlace& place = split_.places[index];
      std::vector<uint64_t>& sizes = split_.buffers[place.device];
      std::vector<size_t>& busy = busy_until[place.device];
      size_t best = sizes.size();
      for (size_t b = 0; b < sizes.size(); ++b) {
        if (busy[b] >= lives_[index].first) continue;
        if (best == sizes.size()) best = b;
        const bool fits = sizes[b] >= place.bytes, best_fits = sizes[best] >= place.bytes;
        const bool better =
            fits ? !best_fits || sizes[b] < sizes[best] : !best_fits && sizes[b] > sizes[best];
        if (better) best = b;
      }
      if (best == sizes.size()) {
        sizes.push_back(0);
        busy.push_back(0);
      }
      sizes[best] = std::max(sizes[best], place.bytes);
      busy[best] = lives_[index].last;
      place.buffer = best;
    }
  }

  const SegmentGraph& whole_;
  const OpGraph& graph_;
  const std::vector<OpOwners>& owners_;
  const std::vector<bool>& sees_rows_;
  const OpSchedule schedule_;
  std::map<SlotId, TensorId> first_;                      // by slot: its first tensor
  std::vector<bool> is_io_;                               // by slot
  std::map<std::pair<size_t, SlotId>, size_t> wholes_;    // places by device and slot
  std::map<std::pair<size_t, size_t>, ValuePart> parts_;  // by op and share
  std::vector<Life> lives_;                               // by place
  GraphSplit split_;
};

}  // namespace

GraphSplit SplitGraph(const SegmentGraph& whole, const std::vector<OpOwners>& owners,
                      const std::vector<bool>& sees_rows) {
  return Splitter(whole, owners, sees_rows).Make();
}

}  // namespace trine
