#include "runtime/graph/execution_graph.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"

namespace trine {
namespace {

std::span<const std::byte> BytesOf(const auto& values) { return std::as_bytes(std::span(values)); }

// Returns a pass's bytes for one of its inputs.
std::span<const std::byte> InputBytes(const Pass& pass, TensorId SegmentIo::*input) {
  if (input == &SegmentIo::tokens) return BytesOf(pass.tokens);
  if (input == &SegmentIo::rope) return BytesOf(pass.rope_rows);
  if (input == &SegmentIo::rope_windowed) return BytesOf(pass.rope_windowed_rows);
  if (input == &SegmentIo::kv_slots) return BytesOf(pass.kv_slots);
  if (input == &SegmentIo::block_table) return BytesOf(pass.block_table);
  if (input == &SegmentIo::q_offsets) return BytesOf(pass.q_offsets);
  if (input == &SegmentIo::kv_lengths) return BytesOf(pass.kv_lengths);
  return BytesOf(pass.output_rows);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExecutionGraph>> ExecutionGraph::Create(std::shared_ptr<Model> model,
                                                                       uint64_t plan_bytes) {
  auto shape = PassGraph::Create(*model);
  if (!shape.ok()) return shape.status();
  return std::unique_ptr<ExecutionGraph>(
      new ExecutionGraph(std::move(model), *std::move(shape), plan_bytes));
}

ExecutionGraph::ExecutionGraph(std::shared_ptr<Model> model, std::unique_ptr<PassGraph> shape,
                               uint64_t plan_bytes)
    : model_(std::move(model)),
      shape_(std::move(shape)),
      windows_(std::make_unique<Windows>(*shape_, model_.get(), plan_bytes)),
      pool_(std::make_shared<KvBlockPool>(model_->limits().kv_blocks)),
      blocks_(pool_),
      words_((shape_->nodes().size() + 63) / 64),
      attending_(shape_->caches().size()),
      params_(shape_->whole().graph.n_params(), 1) {
  for (size_t n = 0; n < shape_->nodes().size(); ++n) {
    for (const size_t cache : shape_->nodes()[n].attends) attending_[cache].push_back(n);
  }
}

absl::Status ExecutionGraph::CheckPass(std::span<const int32_t> tokens,
                                       std::span<const int32_t> rows) const {
  const SegmentLimits& limits = model_->limits();
  const auto n = static_cast<int64_t>(tokens.size());
  if (n == 0 || n > limits.max_tokens) {
    return absl::OutOfRangeError(
        absl::StrCat("a pass has 1 to ", limits.max_tokens, " tokens, not ", n));
  }
  if (n > limits.max_context - positions_) {
    return absl::OutOfRangeError(absl::StrCat("the context of ", limits.max_context, " is full"));
  }
  for (const int32_t token : tokens) {
    if (token >= 0 && token < model_->config().n_vocab) continue;
    return Invalid("token ", token, " is not in the vocabulary");
  }
  const auto outside = [&](int32_t row) { return row < 0 || row >= n; };
  if (rows.empty() || static_cast<int64_t>(rows.size()) > limits.max_output_rows ||
      std::any_of(rows.begin(), rows.end(), outside)) {
    return absl::InvalidArgumentError("the rows of output that are wanted are none of the pass's");
  }
  return absl::OkStatus();
}

absl::Status ExecutionGraph::Begin(std::span<const int32_t> tokens, std::span<const int32_t> rows) {
  if (absl::Status s = CheckPass(tokens, rows); !s.ok()) return s;
  const GraphPass pass{positions_,
                       {static_cast<int64_t>(tokens.size()), static_cast<int64_t>(rows.size())}};
  if (absl::Status s = blocks_.Reserve(pass.end()); !s.ok()) return s;
  Batch batch;
  batch.parts.push_back({tokens, positions_, &blocks_});
  batch.output_rows.assign(rows.begin(), rows.end());
  model_->Prepare(batch, 0, &pass_);
  const auto block = arena_.Advance(shape_->BlockBytes(pass.sizes));
  if (!block.ok()) return block.status();
  passes_.push_back(pass);
  dirty_.resize(passes_.size() * words_, 0);
  positions_ = pass.end();
  const size_t t = passes_.size() - 1;
  for (size_t v = 0; v < shape_->values().size(); ++v) {
    if (shape_->values()[v].input == nullptr) continue;
    const std::span<const std::byte> bytes = InputBytes(pass_, shape_->values()[v].input);
    const Handle handle = HandleOf(t, v);
    std::memcpy(arena_.At(handle), bytes.data(), std::min<uint64_t>(bytes.size(), handle.bytes));
  }
  return absl::OkStatus();
}

absl::Status ExecutionGraph::Capture(std::span<const int32_t> tokens,
                                     std::span<const int32_t> rows) {
  if (absl::Status s = Begin(tokens, rows); !s.ok()) return s;
  absl::Status status = RunModel();
  if (!status.ok()) Regress(passes_.size() - 1);
  return status;
}

absl::Status ExecutionGraph::RunModel() {
  const size_t t = passes_.size() - 1;
  size_t tap = 0;
  for (size_t stage = 0; stage < model_->stage_count(); ++stage) {
    StageRun run;
    if (absl::Status s = model_->Run(stage, &pass_, /*keep=*/false, &run); !s.ok()) return s;
    for (size_t i = 0; i < model_->StageTaps(stage).size(); ++i, ++tap) {
      const size_t value = shape_->taps()[tap];
      if (shape_->values()[value].is_cache()) continue;  // it stays in the cache
      absl::Status s = model_->ReadTap(stage, i, pass_, arena_.At(HandleOf(t, value)));
      if (!s.ok()) return s;
    }
  }
  model_->CountChoices(&pass_);
  return absl::OkStatus();
}

absl::Status ExecutionGraph::Append(std::span<const int32_t> tokens,
                                    std::span<const int32_t> rows) {
  if (absl::Status s = Begin(tokens, rows); !s.ok()) return s;
  for (size_t n = 0; n < nodes_per_pass(); ++n) SetDirty(passes_.size() - 1, n, true);
  return absl::OkStatus();
}

void ExecutionGraph::SetDirty(size_t pass, size_t node, bool dirty) {
  const uint64_t bit = uint64_t{1} << (node % 64);
  uint64_t& word = Words(pass)[node / 64];
  word = dirty ? word | bit : word & ~bit;
}

bool ExecutionGraph::IsDirty(uint64_t node) const {
  return IsDirty(static_cast<size_t>(node / nodes_per_pass()),
                 static_cast<size_t>(node % nodes_per_pass()));
}

Handle ExecutionGraph::HandleOf(size_t pass, size_t value) const {
  const PassSizes& sizes = passes_[pass].sizes;
  const ValuePlace& place = shape_->PlaceOf(value);
  const bool in_arena = !shape_->values()[value].is_cache();
  return arena_.Block(pass).Part(place.offset.At(sizes), in_arena ? place.bytes.At(sizes) : 0);
}

template <class Function>
absl::Status ExecutionGraph::EachPiece(uint64_t begin, uint64_t end, Function f) {
  if (begin > end || end > passes_.size() * nodes_per_pass()) {
    return absl::OutOfRangeError(absl::StrCat("there are no nodes ", begin, " to ", end, ": ",
                                              passes_.size(), " passes have ",
                                              passes_.size() * nodes_per_pass()));
  }
  const auto& nodes = shape_->nodes();
  while (begin < end) {
    const auto pass = static_cast<size_t>(begin / nodes_per_pass());
    const auto first = static_cast<size_t>(begin % nodes_per_pass());
    const auto most =
        static_cast<size_t>(std::min<uint64_t>(nodes_per_pass(), first + (end - begin)));
    size_t last = first + 1;
    while (last < most && nodes[last].stage == nodes[first].stage) ++last;
    if (absl::Status s = f(pass, first, last); !s.ok()) return s;
    begin += last - first;
  }
  return absl::OkStatus();
}

absl::Status ExecutionGraph::ExecuteWindow(uint64_t begin, uint64_t end) {
  return EachPiece(begin, end, [&](size_t pass, size_t first, size_t last) {
    return RunPiece(pass, first, last);
  });
}

absl::Status ExecutionGraph::ExecuteDirty() {
  const auto& nodes = shape_->nodes();
  for (size_t pass = 0; pass < passes_.size(); ++pass) {
    for (size_t first = 0; first < nodes.size(); ++first) {
      if (!IsDirty(pass, first)) continue;
      size_t last = first + 1;
      while (last < nodes.size() && nodes[last].stage == nodes[first].stage &&
             IsDirty(pass, last)) {
        ++last;
      }
      if (absl::Status s = RunPiece(pass, first, last); !s.ok()) return s;
      first = last - 1;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ExecutionGraph::Take(const Window::Port& port, const PassSizes& sizes,
                                          std::byte* block, const Segment& segment) {
  std::byte* const to = block + port.place.offset.At(sizes);
  const uint64_t bytes = port.place.bytes.At(sizes);
  const void* from = port.host;
  if (from == nullptr) {
    staging_.resize(bytes);
    if (absl::Status s = segment.Read(port.tensor, 0, staging_.data(), bytes); !s.ok()) return s;
    from = staging_.data();
  }
  if (std::memcmp(to, from, bytes) == 0) return false;
  std::memcpy(to, from, bytes);
  return true;
}

absl::Status ExecutionGraph::RunPiece(size_t pass, size_t begin, size_t end) {
  const auto found = windows_->Get(begin, end);
  if (!found.ok()) return found.status();
  Window& window = **found;
  Segment& segment = window.segment();
  const GraphPass& p = passes_[pass];
  std::byte* const block = arena_.At(arena_.Block(pass));
  if (absl::Status s = window.BindGraphInputs(pass, p.sizes, block); !s.ok()) return s;
  if (!window.Holds(pass, changes_)) {
    window.SetHeld(kNoPass, 0);
    for (const Window::Port& port : window.inputs()) {
      const std::byte* const from = block + port.place.offset.At(p.sizes);
      const uint64_t bytes = port.place.bytes.At(p.sizes);
      if (port.host != nullptr) {
        std::memcpy(port.host, from, bytes);
      } else if (absl::Status s = segment.Write(port.tensor, from, bytes); !s.ok()) {
        return s;
      }
    }
    window.SetHeld(pass, changes_);
  }
  params_[kParamTokens] = p.sizes.tokens;
  params_[kParamOutputRows] = p.sizes.rows;
  params_[kParamKvPositions] = p.end();
  if (absl::Status s = segment.Run(params_); !s.ok()) return s;
  runs_ += end - begin;
  for (const Window::Port& port : window.outputs()) {
    const auto changed = Take(port, p.sizes, block, segment);
    if (!changed.ok()) return changed.status();
    if (!*changed) continue;
    ++changes_;
    const GraphValue& value = shape_->values()[port.value];
    if (!IsDirty(pass, value.node)) continue;
    for (const size_t reader : value.readers) SetDirty(pass, reader, true);
  }
  for (size_t n = begin; n < end; ++n) {
    if (!IsDirty(pass, n)) continue;
    for (const size_t cache : shape_->nodes()[n].stores) CacheChanged(pass, n, cache);
  }
  for (size_t n = begin; n < end; ++n) SetDirty(pass, n, false);
  return absl::OkStatus();
}

// Marks the nodes that read the changed rows as dirty: later nodes of this pass that read the
// cache, and all nodes of later passes that do.
void ExecutionGraph::CacheChanged(size_t pass, size_t node, size_t cache) {
  for (const size_t n : attending_[cache]) {
    if (n > node) SetDirty(pass, n, true);
    for (size_t later = pass + 1; later < passes_.size(); ++later) SetDirty(later, n, true);
  }
}

absl::Status ExecutionGraph::Write(size_t pass, size_t index, std::span<const std::byte> bytes) {
  if (pass >= passes_.size() || index >= shape_->values().size()) {
    return absl::OutOfRangeError("there is no such value");
  }
  const GraphValue& value = shape_->values()[index];
  if (value.input != nullptr && value.input != &SegmentIo::tokens) {
    return Invalid(value.name, " says where a pass is, and stays as it is");
  }
  if (bytes.size() != shape_->Bytes(index, passes_[pass].sizes)) {
    return Invalid(value.name, " has ", shape_->Bytes(index, passes_[pass].sizes), " bytes, not ",
                   bytes.size());
  }
  if (value.input != nullptr) {
    for (size_t at = 0; at < bytes.size(); at += sizeof(int32_t)) {
      int32_t token = 0;
      std::memcpy(&token, bytes.data() + at, sizeof(token));
      if (token < 0 || token >= model_->config().n_vocab) {
        return Invalid("token ", token, " is not in the vocabulary");
      }
    }
  }
  if (value.is_cache()) {
    const GraphCache& cache = shape_->caches()[value.cache];
    absl::Status s = model_->WriteCache(cache.stage, cache.number, CacheRows(cache.tensor),
                                        SlotsOf(pass), bytes.data());
    if (s.ok()) CacheChanged(pass, value.node, value.cache);
    return s;
  }
  std::byte* const to = arena_.At(HandleOf(pass, index));
  if (std::memcmp(to, bytes.data(), bytes.size()) == 0) return absl::OkStatus();
  std::memcpy(to, bytes.data(), bytes.size());
  ++changes_;
  if (value.input != nullptr) windows_->ForgetInputs();
  for (const size_t reader : value.readers) SetDirty(pass, reader, true);
  return absl::OkStatus();
}

std::vector<int32_t> ExecutionGraph::SlotsOf(size_t pass) const {
  std::vector<int32_t> slots;
  for (int64_t p = passes_[pass].position; p < passes_[pass].end(); ++p) {
    slots.push_back(blocks_.SlotOf(p));
  }
  return slots;
}

absl::StatusOr<std::vector<std::byte>> ExecutionGraph::ReadBack(size_t pass, size_t index) const {
  if (pass >= passes_.size() || index >= shape_->values().size()) {
    return absl::OutOfRangeError("there is no such value");
  }
  const GraphValue& value = shape_->values()[index];
  std::vector<std::byte> bytes(shape_->Bytes(index, passes_[pass].sizes));
  if (value.is_cache()) {
    const GraphCache& cache = shape_->caches()[value.cache];
    absl::Status s = model_->ReadCache(cache.stage, cache.number, CacheRows(cache.tensor),
                                       SlotsOf(pass), bytes.data());
    if (!s.ok()) return s;
  } else {
    std::memcpy(bytes.data(), arena_.At(HandleOf(pass, index)), bytes.size());
  }
  return bytes;
}

absl::StatusOr<std::vector<std::byte>> ExecutionGraph::ReadBack(size_t value) const {
  if (passes_.empty()) return absl::FailedPreconditionError("there is no pass yet");
  return ReadBack(passes_.size() - 1, value);
}

void ExecutionGraph::Regress(size_t t) {
  if (t >= passes_.size()) return;
  windows_->ForgetInputs();
  ++changes_;
  positions_ = passes_[t].position;
  passes_.resize(t);
  dirty_.resize(t * words_);
  arena_.Regress(t);
  blocks_.Truncate(positions_);
}

absl::Status ExecutionGraph::RegressTo(int64_t position) {
  if (position < 0 || position > positions_) {
    return Invalid("there are ", positions_, " positions, and not ", position);
  }
  size_t t = passes_.size();
  while (t > 0 && passes_[t - 1].end() > position) --t;
  if (t == passes_.size()) return absl::OkStatus();
  passes_[t].position = position;  // where the next pass begins
  Regress(t);
  return absl::OkStatus();
}

absl::Status ExecutionGraph::Poison(uint64_t begin, uint64_t end) {
  ++changes_;
  return EachPiece(begin, end, [&](size_t pass, size_t first, size_t last) {
    const std::vector<int32_t> slots = SlotsOf(pass);
    for (size_t n = first; n < last; ++n) {
      for (const size_t v : shape_->nodes()[n].writes) {
        if (!shape_->values()[v].is_cache()) arena_.Poison(HandleOf(pass, v));
      }
      for (const size_t number : shape_->nodes()[n].stores) {
        const GraphCache& cache = shape_->caches()[number];
        const CacheRows rows(cache.tensor);
        const std::vector<std::byte> poison(rows.Bytes(slots.size()), Arena::kPoison);
        absl::Status s = model_->WriteCache(cache.stage, cache.number, rows, slots, poison.data());
        if (!s.ok()) return s;
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace trine
