#include "runtime/model/model.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "dispatch/weight_path.h"
#include "plugins/device_fault.h"
#include "runtime/model/detour_loader.h"
#include "runtime/model/layout_choice.h"
#include "runtime/model/pack_cache.h"
#include "runtime/model/weight_tasks.h"
#include "runtime/pack_cache/hash64.h"

namespace trine {
namespace {

void Warn(const HostServices& host, const std::string& message) {
  host.table()->log(host.table()->self, TRINE_LOG_WARNING, message.c_str());
}

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

// What devices will read in an arena, as far as is known before it is tried.
uint64_t ArenaWork(const std::vector<SegmentPlace>& places,
                   const std::vector<SegmentGraph>& graphs) {
  std::set<const gguf::TensorInfo*> tensors;
  for (size_t i = 0; i < graphs.size(); ++i) {
    if (ExpectedWeightPath(places[i].device->info()) != WeightPath::kArena) continue;
    for (const WeightUse& use : graphs[i].weights) {
      const bool plain = !use.packed && WeightStore::InPlace(*use.info, use.as_f32, false);
      if (plain) tensors.insert(use.info);
    }
  }
  uint64_t bytes = 0;
  for (const gguf::TensorInfo* tensor : tensors) bytes += tensor->bytes;
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Load(
    std::shared_ptr<const gguf::File> file, const ModelConfig& config, const SegmentLimits& limits,
    std::vector<SegmentPlace> places, const HostServices& host, const LoadOptions& options) {
  std::unique_ptr<Model> model(new Model());
  model->file_ = file;
  model->config_ = config;
  model->limits_ = limits;
  model->places_ = places;
  model->taps_ = options.taps;
  model->observer_ = options.observer;
  auto factors = ReadRopeFactors(*file, config.rope, limits.max_context);
  if (!factors.ok()) return factors.status();
  model->rope_ = std::make_unique<RopeTable>(config.rope, *factors);
  if (config.rope_windowed.has_value()) {
    model->rope_windowed_ =
        std::make_unique<RopeTable>(*config.rope_windowed, std::vector<float>());
  }

  std::vector<SegmentGraph> graphs;
  OutOfRange out_of_range;
  absl::Status status = model->BuildGraphs(options.tensors, &graphs);
  LoadOptions one_way = options;
  double told = 0;
  const auto wanted = [&options] { return !options.wanted || options.wanted(); };
  one_way.progress = [&](double fraction) {
    told = std::max(told, fraction);  // also when it begins again below
    return wanted() && (!options.progress || options.progress(told));
  };
  LoadMeter meter(one_way.progress);
  if (status.ok()) status = model->PlaceWeights(host, one_way, &meter, &graphs, &out_of_range);
  if (absl::IsInternal(status) && !model->packed_.empty() && file->mapped()) {
    // A device that fails to pack may still run what is plain.
    Warn(host, absl::StrCat(status.message(), "; weights stay as in the file"));
    model.reset();
    LoadOptions plain = one_way;
    plain.pack = false;
    return Load(std::move(file), config, limits, std::move(places), host, plain);
  }
  if (!status.ok()) return status;
  if (options.taps == TapLevel::kNone) {
    status = model->PlanDetours(options.dispatch, graphs, out_of_range);
    if (!status.ok()) return status;
  }
  status = model->ImportWeights(host, graphs, out_of_range, &meter);
  if (status.ok()) status = meter.Finish();
  if (!status.ok()) return status;
  if (absl::Status s = model->AllocateSplits(graphs); !s.ok()) return s;
  if (absl::Status s = model->MakeBorders(); !s.ok()) return s;
  for (size_t i = 0; i < graphs.size(); ++i) {
    if (!wanted()) return absl::CancelledError("nobody waits for the model any more");
    const absl::Status s = model->LoadGraph(model->loads_[i], model->load_stages_[i],
                                            std::move(graphs[i]), out_of_range);
    if (!s.ok()) return s;
  }
  if (!wanted()) return absl::CancelledError("nobody waits for the model any more");
  if (absl::Status s = model->LoadDetours(host, out_of_range); !s.ok()) return s;
  model->out_of_range_ = std::move(out_of_range);
  return model;
}

std::shared_ptr<Model> Model::Nowhere(const ModelConfig& config, const SegmentLimits& limits) {
  std::shared_ptr<Model> model(new Model());
  model->config_ = config;
  model->limits_ = limits;
  return model;
}

absl::Status Model::ImportWeights(const HostServices& host, const std::vector<SegmentGraph>& graphs,
                                  const OutOfRange& out_of_range, LoadMeter* meter) {
  store_ = std::make_unique<WeightStore>(file_);
  for (size_t i = 0; i < graphs.size(); ++i) {
    for (const WeightUse& use : graphs[i].weights) {
      const bool canon = out_of_range.count(use.info) != 0;
      if (use.packed || !WeightStore::InPlace(*use.info, use.as_f32, canon)) continue;
      store_->Want(loads_[i].device, *use.info);
    }
  }
  for (size_t i = 0; i < graphs.size(); ++i) {
    const std::optional<DetourPlan>& plan = stages_[load_stages_[i]].plan;
    if (!plan || plan->kind != DetourKind::kTwin) continue;
    for (const WeightUse& use : graphs[i].weights) {
      const bool canon = out_of_range.count(use.info) != 0;
      if (!WeightStore::InPlace(*use.info, use.as_f32, canon)) continue;
      store_->WantShared(plan->helper.device, *use.info);
    }
  }
  meter->Waive(ArenaWork(loads_, graphs));  // the store knows now what it is
  return store_->Import(host, meter);
}

std::vector<DeviceWeights> Model::weights() const {
  std::vector<DeviceWeights> all;
  std::set<const Device*> seen;
  for (const SegmentPlace& place : loads_) {
    if (!seen.insert(place.device.get()).second) continue;
    DeviceWeights one{place.device_name, store_->BytesOf(*place.device)};
    for (const PackedWeight& weight : packed_.items()) {
      if (weight.device == place.device) one.packed_bytes += weight.layout.packed_bytes();
    }
    all.push_back(std::move(one));
  }
  return all;
}

absl::Status Model::BuildGraphs(const TensorPlaces& tensors, std::vector<SegmentGraph>* graphs) {
  std::vector<SegmentGraph> whole;
  for (const SegmentPlace& place : places_) {
    auto graph = BuildSegmentGraph(*file_, config_, limits_, place.span,
                                   {.finish = false, .in_place = taps_ != TapLevel::kOps});
    if (!graph.ok()) return graph.status();
    whole.push_back(*std::move(graph));
  }
  if (absl::Status s = CheckAllUsed(*file_, config_, limits_.embeddings, whole); !s.ok()) return s;
  for (size_t i = 0; i < whole.size(); ++i) {
    stages_.emplace_back();
    const SegmentOwners owners = FindOwners(places_[i], whole[i], tensors);
    if (absl::Status s = AddTaps(i, owners, &whole[i]); !s.ok()) return s;
    if (owners.elsewhere()) {
      Cut(i, owners, whole[i], graphs);
      continue;
    }
    whole[i].graph.Finish();
    loads_.push_back(places_[i]);
    load_stages_.push_back(i);
    graphs->push_back(std::move(whole[i]));
  }
  return absl::OkStatus();
}

absl::Status Model::AddTaps(size_t index, const SegmentOwners& owners, SegmentGraph* whole) {
  if (taps_ == TapLevel::kNone) return absl::OkStatus();
  if (owners.elsewhere()) {
    return absl::UnimplementedError(
        "passes are captured where devices have whole layers: not with --split-mode row or "
        "--override-tensor");
  }
  Stage& stage = stages_[index];
  stage.taps = FindTaps(*whole, taps_);
  ExposeTaps(stage.taps, whole);
  for (const Tap& tap : stage.taps) stage.tap_tensors.push_back(whole->graph.tensor(tap.tensor));
  for (const KvUse& use : whole->caches) stage.tap_caches[use.tensor] = use.number;
  return absl::OkStatus();
}

void Model::Cut(size_t stage, const SegmentOwners& owners, const SegmentGraph& whole,
                std::vector<SegmentGraph>* graphs) {
  std::vector<bool> sees_rows;
  for (const NamedDevice& d : owners.devices) {
    sees_rows.push_back((d.device->info().flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0);
  }
  stages_[stage].home = std::make_unique<StageWay>(
      std::make_unique<SplitStage>(owners.devices, SplitGraph(whole, owners.ops, sees_rows)));
  SplitStage& split = *stages_[stage].home->split();
  for (GraphPiece& piece : split.pieces()) {
    const NamedDevice& d = owners.devices[piece.device];
    SegmentPlace load{d.device, d.name, places_[stage].span};
    load.segment = stage;
    load.shared_io_bytes = split.IoBytes(piece.device);
    loads_.push_back(std::move(load));
    load_stages_.push_back(stage);
    graphs->push_back(std::move(piece.graph));
  }
}

absl::Status Model::AllocateSplits(const std::vector<SegmentGraph>& graphs) {
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    if (stages_[stage].home == nullptr) continue;
    SplitStage& split = *stages_[stage].home->split();
    std::vector<uint64_t> scratch(split.devices().size(), 0);
    for (size_t i = 0, piece = 0; i < graphs.size(); ++i) {
      if (load_stages_[i] != stage) continue;
      const auto needs = Segment::Query(*loads_[i].device, graphs[i].graph, TRINE_NUMERICS_EXACT);
      if (!needs.ok()) return needs.status();
      uint64_t& most = scratch[split.pieces()[piece++].device];
      most = std::max(most, needs->scratch_bytes);
    }
    if (absl::Status s = split.Allocate(scratch); !s.ok()) return s;
    for (size_t d = 0; d < scratch.size(); ++d) {
      scratch_bytes_ += scratch[d] + split.IoBytes(d);
      device_bytes_[split.devices()[d].device.get()] += scratch[d] + split.IoBytes(d);
    }
  }
  return absl::OkStatus();
}

absl::Status Model::PlaceWeights(const HostServices& host, const LoadOptions& options,
                                 LoadMeter* meter, std::vector<SegmentGraph>* graphs,
                                 OutOfRange* out_of_range) {
  const auto warn = [&](const std::string& message) { Warn(host, message); };
  const auto collect = [&] {
    for (size_t i = 0; i < graphs->size(); ++i) {
      for (const WeightUse& use : (*graphs)[i].weights) {
        if (use.packed) packed_.Add(loads_[i].device, use.info, *use.packed);
      }
    }
  };
  for (size_t i = 0; options.pack && i < graphs->size(); ++i) {
    ChooseLayouts(*loads_[i].device, &(*graphs)[i], warn);
  }
  collect();
  const auto tasks_for = [&](bool cached) {
    WeightTasks list(*file_);
    for (size_t i = 0; i < graphs->size(); ++i) {
      for (const WeightUse& use : (*graphs)[i].weights) {
        PackedWeight* weight =
            use.packed ? packed_.Add(loads_[i].device, use.info, *use.packed) : nullptr;
        list.Add(use.info, weight, cached);
      }
    }
    return list.Make();
  };
  const uint64_t work = WorkOf(tasks_for(false));
  meter->Expect(work);
  bool cached = false, keep_cache = false;
  const auto check_memory = [&](bool packed_in_file) {
    const absl::Status s = CheckMemory(loads_, graphs, file_->mapped(), packed_in_file,
                                       (places_.size() - 1) * pass_places() * BorderBytes(), warn);
    packed_.Clear();  // some may have become plain
    collect();
    return s;
  };
  if (!options.pack_cache.empty() && !packed_.empty()) {
    // Before a device that can't import gets its copy.
    if (absl::Status s = check_memory(true); !s.ok()) return s;
    const absl::Status s = LoadPackCache(options.pack_cache, *file_, host, meter, &packed_);
    if (absl::IsCancelled(s)) return s;
    cached = s.ok();
    if (!cached && !absl::IsNotFound(s)) {
      keep_cache = !IsFaultOfCache(s);
      warn(absl::StrCat("pack cache ", options.pack_cache, ": ", s.message(), "; it is not used",
                        keep_cache ? "" : " and will be written anew"));
    }
  }
  if (!cached) {
    if (absl::Status s = check_memory(false); !s.ok()) return s;
  }
  absl::Status s = packed_.Allocate();
  if (absl::IsResourceExhausted(s)) {  // nothing of the file has been let go of yet
    warn(absl::StrCat("there is no memory for packed weights (", s.message(),
                      "): they stay as in the file, which is slower"));
    packed_.Clear();
    for (SegmentGraph& graph : *graphs) ClearLayouts(&graph);
  } else if (!s.ok()) {
    return s;
  }
  const bool write = !cached && !keep_cache && !options.pack_cache.empty() && !packed_.empty();
  std::vector<WeightTask> tasks = tasks_for(cached);
  meter->Expect(WorkOf(tasks) + (write ? packed_.bytes() : 0) + ArenaWork(loads_, *graphs));
  meter->Waive(work);
  s = RunWeightPass(*file_, &tasks, write, host, meter);
  if (!s.ok()) return s;
  for (const WeightTask& task : tasks) {
    if (task.out_of_range) out_of_range->insert(task.tensor);
  }
  if (write) {
    s = WritePackCache(options.pack_cache, *file_, packed_, meter);
    if (absl::IsCancelled(s)) return s;
    if (!s.ok()) warn(absl::StrCat("packed weights are not kept: ", s.message()));
  }
  return absl::OkStatus();
}

// Of one place: the hidden state of the largest pass.
uint64_t Model::BorderBytes() const {
  return static_cast<uint64_t>(limits_.max_tokens) * static_cast<uint64_t>(config_.n_embd) *
         sizeof(float);
}

absl::Status Model::MakeBorders() {
  for (size_t i = 0; i + 1 < places_.size(); ++i) {
    auto border = StageBorder::Create(pass_places(), BorderBytes(),
                                      {places_[i].device, places_[i + 1].device});
    if (!border.ok()) return border.status();
    scratch_bytes_ += (*border)->bytes();
    borders_.push_back(*std::move(border));
  }
  return absl::OkStatus();
}

absl::StatusOr<BoundEnds> Model::BindEnds(const std::shared_ptr<Device>& device, size_t stage,
                                          SegmentGraph* graph, std::vector<SlotMemory>* memory) {
  const auto bind = [&](TensorId tensor, StageBorder* border) -> absl::StatusOr<bool> {
    const SlotId slot = graph->graph.SlotOf(tensor);
    const auto spans = border->Import(device, graph->graph.slots()[slot].bytes);
    if (!spans.ok()) return spans.status();
    if (spans->empty()) return false;
    graph->graph.SetAlternates(tensor, static_cast<uint32_t>(spans->size()));
    for (uint32_t i = 0; i < spans->size(); ++i) memory->push_back({slot, (*spans)[i], i});
    return true;
  };
  BoundEnds bound;
  if (graph->io.hidden_in != TRINE_NONE) {
    const auto in = bind(graph->io.hidden_in, borders_[stage - 1].get());
    if (!in.ok()) return in.status();
    bound.in = *in;
  }
  if (graph->io.hidden_out != TRINE_NONE) {
    const auto out = bind(graph->io.hidden_out, borders_[stage].get());
    if (!out.ok()) return out.status();
    bound.out = *out;
  }
  return bound;
}

absl::Status Model::LoadGraph(const SegmentPlace& place, size_t index, SegmentGraph graph,
                              const OutOfRange& out_of_range) {
  Stage* const stage = &stages_[index];
  std::vector<SlotMemory> memory;
  for (const WeightUse& use : graph.weights) {
    const SlotId slot = graph.graph.SlotOf(use.tensor);
    if (use.packed) {
      memory.push_back({slot, packed_.Find(place.device.get(), use.info, use.packed->id())->span});
      continue;
    }
    plain_.insert(use.info);
    const auto where =
        store_->Place(place.device, *use.info, use.as_f32, out_of_range.count(use.info) != 0);
    if (!where.ok()) return where.status();
    graph.graph.SetOffset(use.tensor, where->tensor_offset);
    memory.push_back({slot, where->span});
  }
  for (const KvUse& use : graph.caches) {
    const auto span = stage->caches.Of(place.device, use.number, graph.graph.Bytes(use.tensor));
    if (!span.ok()) return span.status();
    memory.push_back({graph.graph.SlotOf(use.tensor), *span});
  }
  if (stage->home != nullptr) {
    return stage->home->split()->AddPiece(std::move(graph.graph), std::move(memory));
  }
  const auto bound = BindEnds(place.device, index, &graph, &memory);
  if (!bound.ok()) return bound.status();
  auto segment =
      Segment::Create(place.device, std::move(graph.graph), TRINE_NUMERICS_EXACT, memory);
  if (!segment.ok()) return segment.status();
  const uint64_t own = (*segment)->needs().scratch_bytes + (*segment)->needs().io_bytes;
  scratch_bytes_ += own;
  device_bytes_[place.device.get()] += own;
  stage->home =
      std::make_unique<StageWay>(place.device_name, graph.io, *std::move(segment), *bound);
  return absl::OkStatus();
}

absl::Status Model::LockWeights() const {
  if (packed_.empty() && store_->arena_bytes() == 0) return file_->Lock();
  std::vector<absl::Span<const std::byte>> ranges = packed_.Visible();
  // Some are there in parts, and one may be both: packed to be multiplied with, plain for rows to
  // be picked from it.
  for (const gguf::TensorInfo* t : plain_) ranges.push_back(store_->DataOf(*t));
  return gguf::FileMemory::LockRanges(ranges);
}

// What it has been given: weights that are its own, caches of its stages, scratch.
uint64_t Model::BytesOn(const Device& device) const {
  const WeightBytes weights = store_->BytesOf(device);
  uint64_t bytes = weights.copied + weights.converted;
  for (const PackedWeight& weight : packed_.items()) {
    if (weight.device.get() == &device) bytes += weight.layout.packed_bytes();
  }
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (places_[i].device.get() == &device) bytes += stages_[i].caches.bytes();
  }
  const auto found = device_bytes_.find(&device);
  return bytes + (found == device_bytes_.end() ? 0 : found->second);
}

uint64_t Model::kv_bytes() const {
  uint64_t bytes = 0;
  for (const Stage& stage : stages_) bytes += stage.caches.bytes();
  return bytes;
}

uint64_t Model::kv_block_bytes() const {
  uint64_t bytes = 0;
  for (const Stage& stage : stages_) bytes += stage.caches.BlockBytes(limits_.kv_blocks);
  return bytes;
}

uint64_t Model::RopeHash() const {
  std::vector<float> rows;
  for (int64_t position = 0; position < kBlockPositions; ++position) {
    rope_->AppendRow(position, &rows);
    if (rope_windowed_ != nullptr) rope_windowed_->AppendRow(position, &rows);
  }
  return Hash64(rows.data(), rows.size() * sizeof(float), 0);
}

std::vector<std::string> Model::StageDevices(size_t stage) const {
  std::vector<std::string> names = stages_[stage].home->Devices();
  if (stages_[stage].plan) names.push_back(stages_[stage].plan->helper.name);
  return names;
}

std::set<std::string> Model::Devices() const {
  std::set<std::string> names;
  for (size_t i = 0; i < stage_count(); ++i) {
    for (std::string& name : StageDevices(i)) names.insert(std::move(name));
  }
  return names;
}

BusyDevice Model::Busiest(size_t stage) const {
  const StageWay* way = stages_[stage].current;
  return way == nullptr ? BusyDevice{places_[stage].device_name, {}} : way->Busiest();
}

std::vector<DetourInfo> Model::detours() const {
  std::vector<DetourInfo> infos;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const std::optional<DetourPlan>& plan = stages_[i].plan;
    if (plan) infos.push_back({i, plan->helper.name, plan->kind, plan->FirstTokens()});
  }
  return infos;
}

void Model::Prepare(const Batch& batch, size_t place, Pass* pass) const {
  Pass& p = *pass;
  p.place = place;
  p.tokens.clear();
  p.kv_slots.clear();
  p.kv_lengths.clear();
  p.rope_rows.clear();
  p.rope_windowed_rows.clear();
  p.q_offsets.assign(1, 0);
  const auto table_width = static_cast<size_t>(limits_.max_blocks_per_sequence());
  p.block_table.assign(table_width * batch.parts.size(), 0);
  int64_t longest = 1;
  for (size_t s = 0; s < batch.parts.size(); ++s) {
    const BatchPart& part = batch.parts[s];
    const auto n = static_cast<int64_t>(part.tokens.size());
    p.tokens.insert(p.tokens.end(), part.tokens.begin(), part.tokens.end());
    for (int64_t i = 0; i < n; ++i) {
      const int64_t position = part.first_position + i;
      p.kv_slots.push_back(part.blocks->SlotOf(position));
      rope_->AppendRow(position, &p.rope_rows);
      if (rope_windowed_ != nullptr) rope_windowed_->AppendRow(position, &p.rope_windowed_rows);
    }
    p.q_offsets.push_back(static_cast<int32_t>(p.tokens.size()));
    p.kv_lengths.push_back(static_cast<int32_t>(part.first_position + n));
    longest = std::max(longest, part.first_position + n);
    const std::vector<int32_t>& blocks = part.blocks->blocks();
    std::copy_n(blocks.begin(), std::min(blocks.size(), table_width),
                p.block_table.begin() + static_cast<ptrdiff_t>(s * table_width));
  }
  // Entries beyond the last sequence hold no token.
  p.q_offsets.resize(static_cast<size_t>(limits_.max_sequences) + 1, p.q_offsets.back());
  p.output_rows = batch.output_rows;
  p.wants_hidden = batch.hidden && limits_.hidden_rows;
  p.params.assign(4, 0);
  p.params[kParamTokens] = static_cast<int64_t>(p.tokens.size());
  p.params[kParamSequences] = static_cast<int64_t>(batch.parts.size());
  p.params[kParamOutputRows] = static_cast<int64_t>(p.output_rows.size());
  p.params[kParamKvPositions] = longest;
  p.rows = {};
  p.moves = batch.moves;
}

absl::Status Model::WriteInputs(size_t stage, const Pass& pass, StageWay* way,
                                uint64_t* bytes) const {
  absl::Status status;
  const auto write = [&](TensorId SegmentIo::*which, const auto& values) {
    if (!status.ok()) return;
    status = way->Write(which, values.data(), values.size() * sizeof(values[0]), bytes);
  };
  write(&SegmentIo::tokens, pass.tokens);
  if (stage > 0) {
    const size_t values = pass.tokens.size() * static_cast<size_t>(config_.n_embd);
    write(&SegmentIo::hidden_in, std::span(borders_[stage - 1]->At(pass.place), values));
  }
  write(&SegmentIo::rope, pass.rope_rows);
  write(&SegmentIo::rope_windowed, pass.rope_windowed_rows);
  write(&SegmentIo::kv_slots, pass.kv_slots);
  write(&SegmentIo::block_table, pass.block_table);
  write(&SegmentIo::q_offsets, pass.q_offsets);
  write(&SegmentIo::kv_lengths, pass.kv_lengths);
  write(&SegmentIo::output_rows, pass.output_rows);
  return status;
}

absl::Status Model::Run(size_t index, Pass* pass, bool keep, StageRun* run) {
  *run = {};
  run->begin = StageRun::Clock::now();
  absl::Status status = RunParts(index, pass, keep, run);
  if (status.ok() && observer_) status = observer_(*this, index, *pass);
  run->end = StageRun::Clock::now();
  run->ok = status.ok();
  return status;
}

StageWay* Model::ChooseWay(size_t index, const Pass& pass, StageRun* run) {
  Stage& stage = stages_[index];
  const auto tokens = static_cast<int64_t>(pass.tokens.size());
  const size_t route = stage.routes.Choose(tokens);
  StageWay* const way = route == 0 ? stage.home.get() : stage.detours[route - 1].get();
  const StageWay* const before = stage.current.exchange(way);
  run->detour = route != 0;
  if (dispatch_log_ && stage.plan && before != way) {
    dispatch_log_(absl::StrCat(
        "dispatch: ", places_[index].device_name, ", a pass of ", tokens,
        tokens == 1 ? " token: " : " tokens: ",
        route == 0 ? "where its layers are" : absl::StrCat("with ", stage.plan->helper.name)));
  }
  return way;
}

// Of a stage's layers in a block of all.
uint64_t Model::KvOffset(size_t stage) const {
  uint64_t offset = 0;
  for (size_t i = 0; i < stage; ++i) offset += stages_[i].caches.BlockBytes(limits_.kv_blocks);
  return offset;
}

absl::Status Model::MoveBlocks(size_t index, const KvMoves& moves, StageRun* run) const {
  const StageCaches& caches = stages_[index].caches;
  const uint64_t offset = KvOffset(index);
  for (const KvMoves::Load& load : moves.loads) {
    absl::Status s = caches.WriteBlock(limits_.kv_blocks, load.to, load.bytes->data() + offset);
    if (!s.ok()) return s;
    run->bytes_in += caches.BlockBytes(limits_.kv_blocks);
  }
  for (const KvMoves::Copy& copy : moves.copies) {
    absl::Status s = caches.CopyBlock(limits_.kv_blocks, copy.from, copy.to);
    if (!s.ok()) return s;
  }
  run->moved_blocks += moves.before();
  return absl::OkStatus();
}

absl::Status Model::SaveBlocks(size_t index, const KvMoves& moves, StageRun* run) const {
  const StageCaches& caches = stages_[index].caches;
  const uint64_t offset = KvOffset(index);
  for (const KvMoves::Save& save : moves.saves) {
    if (save.bytes->empty()) save.bytes->resize(kv_block_bytes());
    absl::Status s = caches.ReadBlock(limits_.kv_blocks, save.from, save.bytes->data() + offset);
    if (!s.ok()) return s;
    run->bytes_out += caches.BlockBytes(limits_.kv_blocks);
  }
  run->moved_blocks += moves.saves.size();
  return absl::OkStatus();
}

absl::Status Model::RunParts(size_t index, Pass* pass, bool keep, StageRun* run) {
  StageWay* const way = ChooseWay(index, *pass, run);
  absl::Status status;
  if (pass->moves.before() != 0) status = MoveBlocks(index, pass->moves, run);
  if (status.ok()) status = WriteInputs(index, *pass, way, &run->bytes_in);
  if (!status.ok()) return status;
  run->written = StageRun::Clock::now();
  status = way->Run(pass->params, pass->place);
  const StageRun::Clock::time_point ran = StageRun::Clock::now();
  run_ns_ += static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(ran - run->written).count());
  if (!status.ok()) return status;
  run->ran = ran;
  if (!pass->moves.saves.empty()) status = SaveBlocks(index, pass->moves, run);
  if (!status.ok()) return status;
  const bool last = index + 1 == stages_.size();
  const int64_t width = last ? output_width() : config_.n_embd;
  const size_t rows = last ? pass->output_rows.size() : pass->tokens.size();
  const size_t values = rows * static_cast<size_t>(width);
  if (last) pass->output.resize(values);
  const auto left =
      way->Read(pass->params, values, keep || !last,
                last ? pass->output.data() : borders_[index]->At(pass->place), &run->bytes_out);
  if (!left.ok()) return left.status();
  if (!last) return absl::OkStatus();
  pass->rows = *left;
  if (!pass->wants_hidden) return absl::OkStatus();
  pass->hidden.resize(rows * static_cast<size_t>(config_.n_embd));
  return way->ReadHidden(pass->params, pass->hidden, &run->bytes_out);
}

absl::Status Model::PlanDetours(const DispatchOptions& options,
                                const std::vector<SegmentGraph>& graphs,
                                const OutOfRange& out_of_range) {
  dispatch_log_ = options.log;
  limits_of_helpers_ = options.limits;
  asked_tokens_ = options.rule.from_tokens > 0;
  for (size_t i = 0; !options.helpers.empty() && i < graphs.size(); ++i) {
    Stage& stage = stages_[load_stages_[i]];
    if (stage.home != nullptr) continue;  // in pieces as it is
    auto whole = BuildSegmentGraph(*file_, config_, limits_, loads_[i].span, {.finish = false});
    if (!whole.ok()) return whole.status();
    const auto can_stream = [&](const gguf::TensorInfo& tensor) {
      return out_of_range.count(&tensor) == 0 && (file_->mapped() || !packed_.Holds(&tensor));
    };
    HomeWeights weights;
    weights.file_mapped = file_->mapped();
    for (const WeightUse& use : graphs[i].weights) {
      weights.packed = weights.packed || use.packed.has_value();
      if (use.packed) weights.bytes += use.info->bytes;
    }
    stage.plan = PlanDetour(loads_[i], *whole, limits_, options, weights, can_stream);
    if (!stage.plan || stage.plan->kind != DetourKind::kTwin) continue;
    std::map<size_t, uint64_t> sizes;
    for (const KvUse& use : graphs[i].caches) sizes[use.number] = graphs[i].graph.Bytes(use.tensor);
    const absl::Status s = stage.caches.Share(loads_[i].device, stage.plan->helper.device, sizes);
    if (s.ok()) continue;
    if (absl::IsUnavailable(s)) return s;
    if (dispatch_log_) {
      dispatch_log_(absl::StrCat("dispatch: ", loads_[i].device_name, ", not with ",
                                 stage.plan->helper.name, ": ", s.message()));
    }
    stage.plan.reset();
  }
  return absl::OkStatus();
}

absl::Status Model::LoadDetours(const HostServices& host, const OutOfRange& out_of_range) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    Stage& stage = stages_[i];
    if (!stage.plan) continue;
    const absl::Status s = LoadDetour(&stage, i, out_of_range);
    if (s.ok()) continue;
    if (!FaultyDevice(s).empty() && !absl::IsResourceExhausted(s)) return s;
    Warn(host, absl::StrCat(places_[i].device_name, " goes without the help of ",
                            stage.plan->helper.name, ": ", s.message()));
    stage.detours.clear();
    stage.plan.reset();
  }
  return absl::OkStatus();
}

absl::Status Model::LoadDetour(Stage* stage, size_t index, const OutOfRange& out_of_range) {
  // How far beyond a border passes keep to the way they took.
  constexpr double kBand = 1.25;
  DetourLoader loader(packed_, out_of_range, store_.get(), &stage->caches);
  const DetourPlan& plan = *stage->plan;
  for (size_t route = 0; route < plan.routes.size(); ++route) {
    auto whole =
        BuildSegmentGraph(*file_, config_, limits_, places_[index].span, {.finish = false});
    if (!whole.ok()) return whole.status();
    auto way = loader.Load(places_[index], plan, route, *std::move(whole));
    if (!way.ok()) return way.status();
    stage->detours.push_back(*std::move(way));
  }
  const auto limit = limits_of_helpers_.find(plan.helper.name);
  const uint64_t used = BytesOn(*plan.helper.device) + loader.helper_bytes();
  if (limit != limits_of_helpers_.end() && used > limit->second) {
    return absl::ResourceExhaustedError(absl::StrCat("with what that takes it would have ", used,
                                                     " bytes there, and may have ", limit->second));
  }
  device_bytes_[plan.helper.device.get()] += loader.helper_bytes();
  scratch_bytes_ += loader.scratch_bytes();
  stage->routes = RouteSwitch(plan.classes, plan.class_routes, asked_tokens_ ? 1 : kBand);
  return absl::OkStatus();
}

uint64_t Model::TapBytes(size_t stage, size_t tap, const Pass& pass) const {
  const trine_tensor& tensor = stages_[stage].tap_tensors[tap];
  return stages_[stage].taps[tap].is_cache ? CacheRows(tensor).Bytes(pass.kv_slots.size())
                                           : BytesAt(tensor, pass.params);
}

absl::Status Model::ReadTap(size_t index, size_t number, const Pass& pass, void* memory) const {
  const Stage& stage = stages_[index];
  const Tap& tap = stage.taps[number];
  if (tap.is_cache) {
    return ReadCache(index, stage.tap_caches.at(tap.tensor), CacheRows(stage.tap_tensors[number]),
                     pass.kv_slots, static_cast<std::byte*>(memory));
  }
  return stage.home->ReadTensor(tap.tensor, memory,
                                BytesAt(stage.tap_tensors[number], pass.params));
}

absl::Status Model::ReadCache(size_t stage, size_t number, const CacheRows& rows,
                              std::span<const int32_t> slots, std::byte* memory) const {
  const Buffer& cache = *stages_[stage].caches.Find(*places_[stage].device, number);
  const auto* host = static_cast<const std::byte*>(cache.host_ptr());
  for (const int32_t slot : slots) {
    for (int64_t head = 0; head < rows.heads; ++head, memory += rows.row_bytes) {
      const uint64_t offset = rows.OffsetOf(slot, head);
      if (host != nullptr) {
        std::memcpy(memory, host + offset, rows.row_bytes);
      } else if (absl::Status s = cache.Read(offset, memory, rows.row_bytes); !s.ok()) {
        return s;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Model::WriteCache(size_t stage, size_t number, const CacheRows& rows,
                               std::span<const int32_t> slots, const std::byte* memory) const {
  const Buffer& cache = *stages_[stage].caches.Find(*places_[stage].device, number);
  auto* host = static_cast<std::byte*>(cache.host_ptr());
  for (const int32_t slot : slots) {
    for (int64_t head = 0; head < rows.heads; ++head, memory += rows.row_bytes) {
      const uint64_t offset = rows.OffsetOf(slot, head);
      if (host != nullptr) {
        std::memcpy(host + offset, memory, rows.row_bytes);
      } else if (absl::Status s = cache.Write(offset, memory, rows.row_bytes); !s.ok()) {
        return s;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SegmentGraph> Model::WholeGraph() const {
  return BuildSegmentGraph(*file_, config_, limits_, {0, config_.n_layers, true, true},
                           {.finish = false, .in_place = taps_ != TapLevel::kOps});
}

absl::StatusOr<std::vector<SlotMemory>> Model::Bind(size_t stage, SegmentGraph* graph) {
  return DetourLoader(packed_, out_of_range_, store_.get(), &stages_[stage].caches)
      .BindAtHome(places_[stage].device, graph);
}

}  // namespace trine
