#include "runtime/graph/window.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "runtime/model/split/piece_graph.h"

namespace trine {

absl::StatusOr<std::unique_ptr<GraphInputs>> GraphInputs::Create(const PassGraph& graph,
                                                                 std::shared_ptr<Device> device) {
  constexpr uint64_t kGrain = 64;
  std::unique_ptr<GraphInputs> inputs(new GraphInputs());
  for (size_t v = 0; v < graph.values().size(); ++v) {
    const GraphValue& value = graph.values()[v];
    if (value.input == nullptr) continue;
    const uint64_t bytes = graph.whole().graph.slots()[value.tensor.slot].bytes;
    auto buffer = Buffer::Allocate(device, (bytes + kGrain - 1) / kGrain * kGrain, TRINE_MEMORY_IO);
    if (!buffer.ok()) return buffer.status();
    inputs->inputs_.push_back({v, graph.PlaceOf(v), *std::move(buffer)});
  }
  return inputs;
}

size_t GraphInputs::Find(size_t value) const {
  const auto found = std::find_if(inputs_.begin(), inputs_.end(),
                                  [&](const Input& input) { return input.value == value; });
  return found == inputs_.end() ? kNone : static_cast<size_t>(found - inputs_.begin());
}

absl::Status GraphInputs::Bind(size_t number, size_t pass, const PassSizes& sizes,
                               const std::byte* block) {
  Input& input = inputs_[number];
  if (input.pass == pass) return absl::OkStatus();
  const std::byte* const from = block + input.place.offset.At(sizes);
  const uint64_t bytes = input.place.bytes.At(sizes);
  if (void* host = input.buffer.host_ptr()) {
    // Unchanged bytes need not leave the caches of the threads that read them.
    if (std::memcmp(host, from, bytes) != 0) std::memcpy(host, from, bytes);
  } else {
    input.pass = kNoPass;  // in case Write fails
    if (absl::Status s = input.buffer.Write(0, from, bytes); !s.ok()) return s;
  }
  input.pass = pass;
  return absl::OkStatus();
}

void GraphInputs::Forget() {
  for (Input& input : inputs_) input.pass = kNoPass;
}

absl::Status Window::BindGraphInputs(size_t pass, const PassSizes& sizes, const std::byte* block) {
  for (const size_t number : bound_) {
    if (absl::Status s = graph_inputs_->Bind(number, pass, sizes, block); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Window>> Window::Create(const PassGraph& graph, size_t begin,
                                                       size_t end, GraphInputs* inputs,
                                                       Model* model) {
  const auto& nodes = graph.nodes();
  WeightSlices slices;  // stays empty: ops are whole
  PieceGraph piece(graph.whole(), graph.seen_slots(), &slices);
  for (size_t op = nodes[begin].begin; op < nodes[end - 1].end; ++op) piece.AddOp(op);
  const auto tensor_of = [&, io = piece.io()](size_t value) {
    return io.at(graph.values()[value].tensor.slot);
  };
  std::unique_ptr<Window> window(new Window());
  window->graph_inputs_ = inputs;
  std::vector<TensorId> bound;  // the tensors of window->bound_
  std::set<size_t> inside, wanted;
  for (size_t n = begin; n < end; ++n) {
    for (const size_t v : nodes[n].reads) {
      if (inside.count(v) != 0 || !wanted.insert(v).second) continue;
      if (const size_t number = inputs->Find(v); number != GraphInputs::kNone) {
        window->bound_.push_back(number);
        bound.push_back(tensor_of(v));
      } else {
        window->inputs_.push_back({v, tensor_of(v), graph.PlaceOf(v)});
      }
    }
    for (const size_t v : nodes[n].writes) {
      if (graph.values()[v].is_cache()) continue;
      inside.insert(v);
      window->outputs_.push_back({v, tensor_of(v), graph.PlaceOf(v)});
    }
  }
  SegmentGraph ops = piece.Take();
  for (KvUse& use : ops.caches) use.number = graph.caches()[use.number].number;
  const size_t stage = nodes[begin].stage;
  auto memory = model->Bind(stage, &ops);
  if (!memory.ok()) return memory.status();
  for (size_t i = 0; i < bound.size(); ++i) {
    const SlotId slot = ops.graph.SlotOf(bound[i]);
    memory->push_back({slot, inputs->SpanOf(window->bound_[i], ops.graph.slots()[slot].bytes)});
  }
  auto segment = Segment::Create(model->places()[stage].device, std::move(ops.graph), *memory);
  if (!segment.ok()) return segment.status();
  window->segment_ = *std::move(segment);
  for (std::vector<Port>* ports : {&window->inputs_, &window->outputs_}) {
    for (Port& port : *ports) port.host = window->segment_->HostView(port.tensor);
  }
  return window;
}

absl::StatusOr<Window*> Windows::Get(size_t begin, size_t end) {
  if (last_ != nullptr && last_nodes_ == std::pair(begin, end)) return last_;
  last_nodes_ = {begin, end};
  const auto found = windows_.find(last_nodes_);
  if (found != windows_.end()) {
    found->second.used = ++uses_;
    return last_ = found->second.window.get();
  }
  last_ = nullptr;
  while (bytes_ > most_bytes_ && !windows_.empty()) {
    const auto oldest = std::min_element(
        windows_.begin(), windows_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    bytes_ -= oldest->second.window->bytes();
    windows_.erase(oldest);
  }
  const auto& device = model_->places()[graph_.nodes()[begin].stage].device;
  std::unique_ptr<GraphInputs>& inputs = inputs_[device.get()];
  if (inputs == nullptr) {
    auto created = GraphInputs::Create(graph_, device);
    if (!created.ok()) return created.status();
    inputs = *std::move(created);
  }
  auto window = Window::Create(graph_, begin, end, inputs.get(), model_);
  if (!window.ok()) return window.status();
  bytes_ += (*window)->bytes();
  Entry& entry = windows_[last_nodes_];
  entry = {*std::move(window), ++uses_};
  return last_ = entry.window.get();
}

void Windows::ForgetInputs() {
  for (const auto& [device, inputs] : inputs_) inputs->Forget();
}

}  // namespace trine
