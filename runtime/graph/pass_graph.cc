#include "runtime/graph/pass_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

constexpr size_t kNobody = static_cast<size_t>(-1);

struct NamedInput {
  const char* name;
  TensorId SegmentIo::*which;
};

constexpr NamedInput kInputs[] = {{"tokens", &SegmentIo::tokens},
                                  {"rope", &SegmentIo::rope},
                                  {"rope of windowed layers", &SegmentIo::rope_windowed},
                                  {"kv slots", &SegmentIo::kv_slots},
                                  {"block table", &SegmentIo::block_table},
                                  {"q offsets", &SegmentIo::q_offsets},
                                  {"kv lengths", &SegmentIo::kv_lengths},
                                  {"output rows", &SegmentIo::output_rows}};

size_t StageOf(const Model& model, int64_t layer) {
  const auto& places = model.places();
  for (size_t i = 0; i < places.size(); ++i) {
    const LayerSpan& span = places[i].span;
    if (layer < 0 && span.embedding) return i;
    if (layer >= span.begin && layer < span.end) return i;
  }
  return places.size() - 1;
}

void AddOnce(size_t item, std::vector<size_t>* list) {
  if (std::count(list->begin(), list->end(), item) == 0) list->push_back(item);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PassGraph>> PassGraph::Create(const Model& model) {
  if (model.taps() == TapLevel::kNone) {
    return absl::FailedPreconditionError("the model was loaded without taps");
  }
  auto whole = model.WholeGraph();
  if (!whole.ok()) return whole.status();
  std::unique_ptr<PassGraph> graph(new PassGraph());
  graph->level_ = model.taps();
  graph->whole_ = *std::move(whole);
  graph->n_layers_ = model.config().n_layers;
  std::vector<size_t> caches_of(model.stage_count(), 0);
  for (const KvUse& use : graph->whole_.caches) {
    const size_t stage = StageOf(model, use.layer);
    graph->caches_.push_back({stage, caches_of[stage]++, graph->whole_.graph.tensor(use.tensor)});
  }
  graph->AddInputs();
  graph->AddNodes();
  for (GraphNode& node : graph->nodes_) node.stage = StageOf(model, node.layer);
  graph->AddTaps();
  if (absl::Status s = graph->Connect(); !s.ok()) return s;
  graph->PlaceValues();
  return graph;
}

void PassGraph::AddInputs() {
  for (const NamedInput& input : kInputs) {
    const TensorId tensor = whole_.io.*input.which;
    if (tensor == TRINE_NONE) continue;
    GraphValue value;
    value.name = input.name;
    value.input = input.which;
    value.tensor = whole_.graph.tensor(tensor);
    values_.push_back(std::move(value));
  }
}

int64_t PassGraph::LayerOfOp(size_t op) const {
  for (const LayerEnd& end : whole_.ends) {
    if (op < end.op) return end.layer;
  }
  return n_layers_;
}

void PassGraph::AddNodes() {
  size_t begin = 0;
  const auto add = [&](size_t end) {
    GraphNode node;
    node.begin = begin;
    node.end = end;
    node.layer = LayerOfOp(begin);
    nodes_.push_back(std::move(node));
    begin = end;
  };
  if (level_ == TapLevel::kOps) {
    while (begin < whole_.graph.n_ops()) add(begin + 1);
    return;
  }
  for (const LayerEnd& end : whole_.ends) add(end.op);
  add(whole_.graph.n_ops());
}

void PassGraph::AddTaps() {
  size_t node = 0;
  for (const Tap& tap : FindTaps(whole_, level_)) {
    while (nodes_[node].end <= tap.op) ++node;
    GraphValue value;
    value.name = OpName(tap.op);
    value.node = node;
    value.op = tap.op;
    value.output = tap.output;
    value.tensor = whole_.graph.tensor(tap.tensor);
    for (const KvUse& use : whole_.caches) {
      if (tap.is_cache && use.tensor == tap.tensor) value.cache = use.number;
    }
    nodes_[node].writes.push_back(values_.size());
    taps_.push_back(values_.size());
    values_.push_back(std::move(value));
  }
}

std::string PassGraph::OpName(size_t op) const {
  const trine_op& o = whole_.graph.op(op);
  std::string name = sdk::OpName(o.kind);
  for (const WeightUse& use : whole_.weights) {
    if (o.n_in > 0 && std::count(o.in, o.in + o.n_in, use.tensor) != 0) {
      return absl::StrCat(name, " ", std::string(use.info->name));
    }
  }
  return name;
}

// Connects each read to the value that was last written to its slot, by a node or as an input.
// Slots that only the ops of one node use stay within it.
absl::Status PassGraph::Connect() {
  seen_slots_.assign(whole_.graph.slots().size(), false);
  std::vector<size_t> slot_values(seen_slots_.size(), kNobody);
  for (size_t v = 0; v < values_.size(); ++v) {
    if (values_[v].is_cache()) continue;
    seen_slots_[values_[v].tensor.slot] = true;
    slot_values[values_[v].tensor.slot] = v;
  }
  for (size_t n = 0; n < nodes_.size(); ++n) {
    std::vector<bool> inside(seen_slots_.size(), false);
    for (size_t op = nodes_[n].begin; op < nodes_[n].end; ++op) {
      if (absl::Status s = ConnectOp(n, op, slot_values, &inside); !s.ok()) return s;
    }
  }
  for (size_t n = 0; n < nodes_.size(); ++n) {
    for (const size_t v : nodes_[n].reads) values_[v].readers.push_back(n);
  }
  return absl::OkStatus();
}

absl::Status PassGraph::ConnectOp(size_t n, size_t index, const std::vector<size_t>& slot_values,
                                  std::vector<bool>* inside) {
  const OpGraph& graph = whole_.graph;
  const trine_op& op = graph.op(index);
  GraphNode& node = nodes_[n];
  for (uint32_t i = 0; i < op.n_in; ++i) {
    if (op.in[i] == TRINE_NONE) continue;
    const SlotId slot = graph.SlotOf(op.in[i]);
    const uint32_t role = graph.slots()[slot].role;
    if (role == TRINE_ROLE_CONSTANT || (*inside)[slot]) continue;
    if (role == TRINE_ROLE_STATE) {
      for (const KvUse& use : whole_.caches) {
        if (graph.SlotOf(use.tensor) == slot) AddOnce(use.number, &node.attends);
      }
      continue;
    }
    const size_t value = slot_values[slot];
    if (value == kNobody) {
      return absl::InternalError(
          absl::StrCat(OpName(index), " reads what a layer before it keeps to itself"));
    }
    AddOnce(value, &node.reads);
  }
  for (uint32_t i = 0; i < op.n_out; ++i) {
    const SlotId slot = graph.SlotOf(op.out[i]);
    if (graph.slots()[slot].role == TRINE_ROLE_STATE) {
      for (const KvUse& use : whole_.caches) {
        if (graph.SlotOf(use.tensor) == slot) AddOnce(use.number, &node.stores);
      }
    } else {
      (*inside)[slot] = true;
    }
  }
  return absl::OkStatus();
}

size_t PassGraph::InputOf(TensorId SegmentIo::*input) const {
  for (size_t v = 0; v < values_.size(); ++v) {
    if (values_[v].input == input) return v;
  }
  return GraphValue::kInput;
}

std::pair<size_t, size_t> PassGraph::NodesOfLayer(int64_t layer) const {
  const auto first = std::find_if(nodes_.begin(), nodes_.end(),
                                  [&](const GraphNode& node) { return node.layer == layer; });
  const auto last =
      std::find_if(first, nodes_.end(), [&](const GraphNode& node) { return node.layer != layer; });
  return {static_cast<size_t>(first - nodes_.begin()), static_cast<size_t>(last - nodes_.begin())};
}

// At most one dimension is a parameter, and there is one sequence.
PassBytes PassGraph::BytesOf(const GraphValue& value) const {
  PassBytes size;
  if (value.is_cache()) {
    size.per_token = CacheRows(value.tensor).Bytes(1);
    return size;
  }
  const std::vector<int64_t> ones(whole_.graph.n_params(), 1);
  const uint64_t bytes = BytesAt(value.tensor, ones);
  uint64_t* grows = &size.fixed;
  for (uint32_t i = 0; i < value.tensor.rank; ++i) {
    if (value.tensor.dims[i] == -1 - int64_t{kParamTokens}) grows = &size.per_token;
    if (value.tensor.dims[i] == -1 - int64_t{kParamOutputRows}) grows = &size.per_row;
  }
  *grows = bytes;
  return size;
}

void PassGraph::PlaceValues() {
  PassBytes end;
  for (const GraphValue& value : values_) {
    const PassBytes bytes = BytesOf(value);
    places_.push_back({end, bytes});
    if (value.is_cache()) continue;
    end.fixed += bytes.fixed;
    end.per_token += bytes.per_token;
    end.per_row += bytes.per_row;
  }
  block_bytes_ = end;
}

}  // namespace trine
