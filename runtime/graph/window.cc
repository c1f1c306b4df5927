#include "runtime/graph/window.h"

#include <algorithm>
#include <set>

#include "runtime/model/piece_graph.h"

namespace trine {

absl::StatusOr<std::unique_ptr<Window>> Window::Create(const PassGraph& graph, size_t begin,
                                                       size_t end, Model* model) {
  const auto& nodes = graph.nodes();
  WeightSlices slices;  // of no use: ops are whole
  PieceGraph piece(graph.whole(), graph.seen_slots(), &slices);
  for (size_t op = nodes[begin].begin; op < nodes[end - 1].end; ++op) piece.AddOp(op);
  const auto tensor_of = [&, io = piece.io()](size_t value) {
    return io.at(graph.values()[value].tensor.slot);
  };
  std::unique_ptr<Window> window(new Window());
  std::set<size_t> inside, wanted;
  for (size_t n = begin; n < end; ++n) {
    for (const size_t v : nodes[n].reads) {
      if (inside.count(v) != 0 || !wanted.insert(v).second) continue;
      window->inputs_.push_back({v, tensor_of(v)});
    }
    for (const size_t v : nodes[n].writes) {
      if (graph.values()[v].is_cache()) continue;
      inside.insert(v);
      window->outputs_.push_back({v, tensor_of(v)});
    }
  }
  SegmentGraph ops = piece.Take();
  for (KvUse& use : ops.caches) use.number = graph.caches()[use.number].number;
  const size_t stage = nodes[begin].stage;
  const auto memory = model->Bind(stage, &ops);
  if (!memory.ok()) return memory.status();
  auto segment = Segment::Create(model->places()[stage].device, std::move(ops.graph),
                                 TRINE_NUMERICS_EXACT, *memory);
  if (!segment.ok()) return segment.status();
  window->segment_ = *std::move(segment);
  return window;
}

absl::StatusOr<Window*> Windows::Get(size_t begin, size_t end) {
  const auto found = windows_.find({begin, end});
  if (found != windows_.end()) {
    found->second.used = ++uses_;
    return found->second.window.get();
  }
  while (bytes_ > most_bytes_ && !windows_.empty()) {
    const auto oldest = std::min_element(
        windows_.begin(), windows_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    bytes_ -= oldest->second.window->bytes();
    windows_.erase(oldest);
  }
  auto window = Window::Create(graph_, begin, end, model_);
  if (!window.ok()) return window.status();
  bytes_ += (*window)->bytes();
  return windows_.emplace(std::pair(begin, end), Entry{*std::move(window), ++uses_})
      .first->second.window.get();
}

}  // namespace trine
