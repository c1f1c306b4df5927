#include "runtime/model/model.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace trine {
namespace {

// A tensor that no op reads means that the description does not fit the file.
absl::Status CheckAllUsed(const gguf::File& file, const ModelConfig& config, bool embeddings,
                          const std::vector<SegmentGraph>& graphs) {
  std::set<std::string_view> used;
  if (embeddings) used.insert({"output.weight", "output.bias"});
  for (const SegmentGraph& g : graphs) {
    for (const WeightUse& w : g.weights) used.insert(w.info->name);
  }
  int64_t unused = 0;
  std::string example;
  for (const gguf::TensorInfo& t : file.tensors()) {
    // What old converters wrote beside the weights and no engine reads.
    const bool ignored = absl::EndsWith(std::string(t.name), ".attn_rot_embd.weight");
    if (used.count(t.name) != 0 || IsRopeFactors(t.name) || ignored) continue;
    if (unused++ == 0) example = std::string(t.name);
  }
  if (unused == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the file has ", unused, unused == 1 ? " tensor" : " tensors", " that ", config.architecture,
      " has no use for, such as ", example, ": it is a variant this version does not know"));
}

std::string Mebibytes(double bytes) {
  return absl::StrCat(static_cast<int64_t>(bytes / (1 << 20) + 0.5), " MiB");
}

// Everything is reserved up front, so what does not fit is said before anything is loaded. Weights
// that stay in the file's own pages are not counted: those can be dropped and read again.
absl::Status CheckMemory(const std::vector<SegmentPlace>& places,
                         const std::vector<SegmentGraph>& graphs) {
  std::map<const Device*, double> needed;  // double: hostile sizes may not wrap
  for (size_t i = 0; i < places.size(); ++i) {
    const Device& device = *places[i].device;
    const auto free = static_cast<double>(device.info().memory_free);
    double kv = 0, weights = 0, scratch = 0;
    for (const KvUse& use : graphs[i].caches) {
      kv += static_cast<double>(graphs[i].graph.Bytes(use.tensor));
    }
    for (const WeightUse& use : graphs[i].weights) {
      weights += device.info().import_alignment == 0 ? static_cast<double>(use.info->bytes) : 0;
    }
    if (free == 0 || kv <= free) {  // else too much already, and no graph to ask about
      const auto segment = Segment::Query(device, graphs[i].graph, TRINE_NUMERICS_EXACT);
      if (!segment.ok()) return segment.status();
      scratch = static_cast<double>(segment->scratch_bytes + segment->io_bytes);
    }
    needed[&device] += kv + weights + scratch;
    if (free != 0 && needed[&device] > free) {
      return absl::ResourceExhaustedError(
          absl::StrCat(places[i].device_name, " has ", Mebibytes(free), " of memory free, but ",
                       Mebibytes(needed[&device]), " are needed, ", Mebibytes(kv),
                       " of them for the KV cache: a smaller context or cache type takes less"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Load(
    std::shared_ptr<const gguf::File> file, const ModelConfig& config, const SegmentLimits& limits,
    std::vector<SegmentPlace> places, const HostServices& host, const LoadProgress& progress) {
  std::unique_ptr<Model> model(new Model());
  model->file_ = file;
  model->config_ = config;
  model->limits_ = limits;
  model->places_ = std::move(places);
  auto factors = ReadRopeFactors(*file, config.rope, limits.max_context);
  if (!factors.ok()) return factors.status();
  model->rope_ = std::make_unique<RopeTable>(config.rope, *factors);
  if (config.rope_windowed.has_value()) {
    model->rope_windowed_ =
        std::make_unique<RopeTable>(*config.rope_windowed, std::vector<float>());
  }

  std::vector<SegmentGraph> graphs;
  std::vector<const gguf::TensorInfo*> weights;
  for (const SegmentPlace& place : model->places_) {
    auto graph = BuildSegmentGraph(*file, config, limits, place.begin, place.end);
    if (!graph.ok()) return graph.status();
    for (const WeightUse& use : graph->weights) weights.push_back(use.info);
    graphs.push_back(*std::move(graph));
  }
  if (absl::Status s = CheckAllUsed(*file, config, limits.embeddings, graphs); !s.ok()) {
    return s;
  }
  if (absl::Status s = CheckMemory(model->places_, graphs); !s.ok()) return s;
  const auto out_of_range = CheckWeights(weights, host, progress);
  if (!out_of_range.ok()) return out_of_range.status();
  size_t next_weight = 0;
  for (size_t i = 0; i < graphs.size(); ++i) {
    const absl::Status s =
        model->LoadStage(model->places_[i], std::move(graphs[i]), *out_of_range, &next_weight);
    if (!s.ok()) return s;
  }
  return model;
}

absl::Status Model::LoadStage(const SegmentPlace& place, SegmentGraph graph,
                              const std::vector<bool>& out_of_range, size_t* next_weight) {
  Stage stage;
  stage.io = graph.io;
  stage.weights = std::make_unique<WeightStore>(file_, place.device);
  std::vector<SlotMemory> memory;
  for (const WeightUse& use : graph.weights) {
    const auto where = stage.weights->Place(*use.info, use.as_f32, out_of_range[(*next_weight)++]);
    if (!where.ok()) return where.status();
    graph.graph.SetOffset(use.tensor, where->tensor_offset);
    memory.push_back({graph.graph.SlotOf(use.tensor), where->span});
  }
  for (const KvUse& use : graph.caches) {
    const uint64_t bytes = graph.graph.Bytes(use.tensor);
    auto buffer = Buffer::Allocate(place.device, bytes, TRINE_MEMORY_STATE);
    if (!buffer.ok()) return buffer.status();
    kv_bytes_ += bytes;
    memory.push_back({graph.graph.SlotOf(use.tensor), buffer->Span(0, bytes)});
    stage.caches.push_back(*std::move(buffer));
  }
  auto segment =
      Segment::Create(place.device, std::move(graph.graph), TRINE_NUMERICS_EXACT, memory);
  if (!segment.ok()) return segment.status();
  scratch_bytes_ += (*segment)->needs().scratch_bytes + (*segment)->needs().io_bytes;
  stage.segment = *std::move(segment);
  stages_.push_back(std::move(stage));
  return absl::OkStatus();
}

void Model::PrepareInputs(const Batch& batch) {
  tokens_.clear();
  kv_slots_.clear();
  kv_lengths_.clear();
  rope_rows_.clear();
  rope_windowed_rows_.clear();
  q_offsets_.assign(1, 0);
  const auto table_width = static_cast<size_t>(limits_.max_blocks_per_sequence());
  block_table_.assign(table_width * batch.parts.size(), 0);
  int64_t longest = 1;
  for (size_t s = 0; s < batch.parts.size(); ++s) {
    const BatchPart& part = batch.parts[s];
    const auto n = static_cast<int64_t>(part.tokens.size());
    tokens_.insert(tokens_.end(), part.tokens.begin(), part.tokens.end());
    for (int64_t i = 0; i < n; ++i) {
      const int64_t position = part.first_position + i;
      kv_slots_.push_back(part.blocks->SlotOf(position));
      rope_->AppendRow(position, &rope_rows_);
      if (rope_windowed_ != nullptr) rope_windowed_->AppendRow(position, &rope_windowed_rows_);
    }
    q_offsets_.push_back(static_cast<int32_t>(tokens_.size()));
    kv_lengths_.push_back(static_cast<int32_t>(part.first_position + n));
    longest = std::max(longest, part.first_position + n);
    const std::vector<int32_t>& blocks = part.blocks->blocks();
    std::copy_n(blocks.begin(), std::min(blocks.size(), table_width),
                block_table_.begin() + static_cast<ptrdiff_t>(s * table_width));
  }
  // Entries beyond the last sequence hold no token.
  q_offsets_.resize(static_cast<size_t>(limits_.max_sequences) + 1, q_offsets_.back());
  output_rows_ = batch.output_rows;
  params_.assign(4, 0);
  params_[kParamTokens] = static_cast<int64_t>(tokens_.size());
  params_[kParamSequences] = static_cast<int64_t>(batch.parts.size());
  params_[kParamOutputRows] = static_cast<int64_t>(output_rows_.size());
  params_[kParamKvPositions] = longest;
}

absl::Status Model::WriteInputs(Stage& stage) {
  absl::Status status;
  const auto write = [&](TensorId io, const auto& values) {
    if (io == TRINE_NONE || !status.ok()) return;
    status = stage.segment->Write(io, values.data(), values.size() * sizeof(values[0]));
  };
  write(stage.io.tokens, tokens_);
  write(stage.io.rope, rope_rows_);
  write(stage.io.rope_windowed, rope_windowed_rows_);
  write(stage.io.kv_slots, kv_slots_);
  write(stage.io.block_table, block_table_);
  write(stage.io.q_offsets, q_offsets_);
  write(stage.io.kv_lengths, kv_lengths_);
  write(stage.io.output_rows, output_rows_);
  return status;
}

absl::Status Model::HandOver(Stage& from, Stage& to) {
  const uint64_t bytes = tokens_.size() * static_cast<size_t>(config_.n_embd) * sizeof(float);
  if (const void* seen = from.segment->HostView(from.io.hidden_out)) {
    return to.segment->Write(to.io.hidden_in, seen, bytes);
  }
  hidden_.resize(bytes / sizeof(float));
  absl::Status status = from.segment->Read(from.io.hidden_out, 0, hidden_.data(), bytes);
  if (!status.ok()) return status;
  return to.segment->Write(to.io.hidden_in, hidden_.data(), bytes);
}

absl::StatusOr<std::span<const float>> Model::ReadOutput() {
  const Stage& last = stages_.back();
  const TensorId io = limits_.embeddings ? last.io.embeddings : last.io.logits;
  const size_t values = output_rows_.size() * static_cast<size_t>(output_width());
  if (const void* seen = last.segment->HostView(io)) {
    return std::span<const float>(static_cast<const float*>(seen), values);
  }
  output_.resize(values);
  absl::Status status = last.segment->Read(io, 0, output_.data(), values * sizeof(float));
  if (!status.ok()) return status;
  return std::span<const float>(output_.data(), values);
}

absl::Status Model::RunStage(Stage& stage) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  absl::Status status = stage.segment->Run(params_);
  run_ns_ += static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
  return status;
}

absl::StatusOr<std::span<const float>> Model::Forward(const Batch& batch) {
  PrepareInputs(batch);
  for (size_t i = 0; i < stages_.size(); ++i) {
    absl::Status status = WriteInputs(stages_[i]);
    if (status.ok() && i > 0) status = HandOver(stages_[i - 1], stages_[i]);
    if (status.ok()) status = RunStage(stages_[i]);
    if (!status.ok()) return status;
  }
  return ReadOutput();
}

}  // namespace trine
