#include "runtime/model/run/model.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/model/arch/read_model.h"
#include "runtime/model/weights/pack_cache.h"
#include "runtime/pack_cache/hash64.h"

namespace trine {
namespace {

// Fails if the file has a tensor that no op reads: then the architecture's description does not fit
// the file.
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
    // Old converters wrote this tensor in addition to the weights; no engine reads it.
    const bool ignored = absl::EndsWith(std::string(t.name), ".attn_rot_embd.weight");
    if (used.count(t.name) != 0 || IsRopeFactors(t.name) || ignored) continue;
    if (unused++ == 0) example = std::string(t.name);
  }
  if (unused == 0) return absl::OkStatus();
  return Invalid("the file has ", unused, unused == 1 ? " tensor" : " tensors", " that ",
                 config.architecture, " has no use for, such as ", example,
                 ": it is a variant this version does not know");
}

// Returns the bytes that devices are expected to read in an arena, before imports are tried.
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
  model->hits_ = options.hits != nullptr
                     ? options.hits
                     : std::make_shared<ExpertHits>(config.n_layers, config.experts.count);
  auto factors = ReadRopeFactors(*file, config.rope, limits.max_context);
  if (!factors.ok()) return factors.status();
  model->rope_ = std::make_unique<RopeTable>(config.rope, *factors, limits.max_context);
  if (config.rope_windowed.has_value()) {
    model->rope_windowed_ = std::make_unique<RopeTable>(*config.rope_windowed, std::vector<float>(),
                                                        limits.max_context);
  }

  std::vector<SegmentGraph> graphs;
  OutOfRange out_of_range;
  absl::Status status = model->BuildGraphs(options, &graphs);
  LoadOptions one_way = options;
  double told = 0;
  const auto wanted = [&options] { return !options.wanted || options.wanted(); };
  one_way.progress = [&](double fraction) {
    told = std::max(told, fraction);  // keeps growing when loading starts again below
    return wanted() && (!options.progress || options.progress(told));
  };
  LoadMeter meter(one_way.progress);
  if (status.ok()) status = model->PlaceWeights(host, one_way, &meter, &graphs, &out_of_range);
  if (absl::IsInternal(status) && !model->packed_.empty() && file->mapped()) {
    // A device that fails to pack may still run plain weights.
    host.Say(TRINE_LOG_WARNING, absl::StrCat(status.message(), "; weights stay as in the file"));
    model.reset();
    LoadOptions plain = one_way;
    plain.pack = false;
    return Load(std::move(file), config, limits, std::move(places), host, plain);
  }
  const auto load_with_slots = [&](const std::string& why) {
    host.Say(TRINE_LOG_WARNING,
             absl::StrCat("experts are copied to slots, because they can't be read in the file's ",
                          "pages: ", why));
    model.reset();
    LoadOptions with_slots = one_way;
    with_slots.experts_in_place = false;
    return Load(std::move(file), config, limits, std::move(places), host, with_slots);
  };
  if (absl::IsResourceExhausted(status) && model->HasExpertsInPlace()) {
    auto again = load_with_slots(std::string(status.message()));
    // Slots take less of this device's memory. If they do not fit either, they are not the reason.
    return absl::IsResourceExhausted(again.status()) ? status : std::move(again);
  }
  if (!status.ok()) return status;
  if (options.taps == TapLevel::kNone) {
    status = model->PlanRoutes(options.dispatch, options.tensors, graphs, out_of_range);
    if (!status.ok()) return status;
  }
  status = model->ImportWeights(host, graphs, out_of_range, &meter);
  if (status.ok()) {
    const std::string why = model->WhyNotInPlace(graphs, out_of_range);
    if (!why.empty()) return load_with_slots(why);
    status = meter.Finish();
  }
  if (!status.ok()) return status;
  if (absl::Status s = model->AllocateSplits(graphs); !s.ok()) return s;
  if (absl::Status s = model->MakeBorders(); !s.ok()) return s;
  for (size_t i = 0; i < graphs.size(); ++i) {
    if (!wanted()) return absl::CancelledError("loading was given up");
    const absl::Status s = model->LoadGraph(model->loads_[i], model->load_stages_[i],
                                            std::move(graphs[i]), out_of_range);
    if (!s.ok()) return s;
  }
  for (const Stage& stage : model->stages_) {
    if (stage.experts == nullptr) continue;
    if (absl::Status s = stage.experts->Begin(host); !s.ok()) return s;
  }
  if (!wanted()) return absl::CancelledError("loading was given up");
  if (absl::Status s = model->LoadRoutes(host, out_of_range); !s.ok()) return s;
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
      const DividedExperts* const experts = stages_[load_stages_[i]].experts.get();
      const bool in_slots = experts != nullptr && experts->HasInSlots(use.info);
      if (use.packed || in_slots) continue;
      if (!WeightStore::InPlace(*use.info, use.as_f32, canon)) continue;
      if (experts != nullptr && experts->HasInPlace(use.info)) {
        store_->WantShared(loads_[i].device, *use.info);
      } else {
        store_->Want(loads_[i].device, *use.info);
      }
    }
  }
  for (size_t i = 0; i < graphs.size(); ++i) {
    const std::optional<RoutePlan>& plan = stages_[load_stages_[i]].plan;
    if (!plan || plan->kind == RouteKind::kStreamed || plan->kind == RouteKind::kFetched) continue;
    for (const WeightUse& use : graphs[i].weights) {
      const bool canon = out_of_range.count(use.info) != 0;
      if (!WeightStore::InPlace(*use.info, use.as_f32, canon)) continue;
      if (!plan->HelperReads(graphs[i].graph, use.tensor)) continue;
      store_->WantShared(plan->helper.device, *use.info);
    }
  }
  meter->Waive(ArenaWork(loads_, graphs));  // Import adds the actual work
  return store_->Import(host, meter);
}

std::string Model::WhyNotInPlace(const std::vector<SegmentGraph>& graphs,
                                 const OutOfRange& out_of_range) const {
  for (size_t i = 0; i < graphs.size(); ++i) {
    const DividedExperts* const experts = stages_[load_stages_[i]].experts.get();
    for (const WeightUse& use : graphs[i].weights) {
      // A bias that is converted is a small copy.
      if (experts == nullptr || !experts->HasInPlace(use.info) || use.as_f32) continue;
      if (out_of_range.count(use.info) != 0) {
        return absl::StrCat(std::string(use.info->name),
                            " has values outside the contract's range");
      }
      if (store_->Sees(*loads_[i].device, *use.info)) continue;
      const std::string refusal = store_->BytesOf(*loads_[i].device).refusal;
      return absl::StrCat(loads_[i].device_name, " did not import the file's pages",
                          refusal.empty() ? "" : absl::StrCat(" (", refusal, ")"));
    }
  }
  return "";
}

bool Model::HasExpertsInPlace() const {
  return std::any_of(stages_.begin(), stages_.end(), [](const Stage& stage) {
    return stage.experts != nullptr && stage.experts->in_place();
  });
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

absl::StatusOr<SegmentGraph> Model::BuildWhole(size_t stage, const LoadOptions& options) {
  SegmentGraphOptions how = {.finish = false, .in_place = taps_ != TapLevel::kOps};
  if (options.tensors.slots.empty()) {
    return BuildSegmentGraph(*file_, config_, limits_, places_[stage].span, how);
  }
  auto experts = std::make_unique<DividedExperts>(hits_, options.expert_moves);
  const bool in_place = options.experts_in_place && file_->mapped() &&
                        MayImport(places_[stage].device->info(), /*read_only=*/true);
  const ExpertDivision division = {options.tensors.slots, in_place,
                                   [&](const gguf::TensorInfo& all, int64_t count) {
                                     return experts->FirstExperts(all, count);
                                   }};
  how.division = &division;
  auto graph = BuildSegmentGraph(*file_, config_, limits_, places_[stage].span, how);
  if (!graph.ok() || graph->divided.empty()) return graph;
  experts->Add(graph->divided);
  stages_[stage].experts = std::move(experts);
  return graph;
}

absl::Status Model::BuildGraphs(const LoadOptions& options, std::vector<SegmentGraph>* graphs) {
  const TensorPlaces& tensors = options.tensors;
  std::vector<SegmentGraph> whole;
  for (const auto& [weight, device] : tensors.tensors) moved_weights_[weight] = device.name;
  for (size_t i = 0; i < places_.size(); ++i) {
    stages_.emplace_back();
    auto graph = BuildWhole(i, options);
    if (!graph.ok()) return graph.status();
    whole.push_back(*std::move(graph));
  }
  if (absl::Status s = CheckAllUsed(*file_, config_, limits_.embeddings, whole); !s.ok()) return s;
  for (size_t i = 0; i < whole.size(); ++i) {
    SegmentOwners owners = FindOwners(places_[i], whole[i], tensors);
    if (!whole[i].divided.empty() && !owners.elsewhere()) {
      // The experts' other device is gone, or is the stage's own.
      LoadOptions undivided = options;
      undivided.tensors.slots.clear();
      stages_[i].experts.reset();
      auto again = BuildWhole(i, undivided);
      if (!again.ok()) return again.status();
      whole[i] = *std::move(again);
      owners = FindOwners(places_[i], whole[i], tensors);
    }
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
        "passes are captured where devices have whole layers: not with --split-mode row, "
        "--override-tensor, --cpu-moe, --n-cpu-moe or --hot-experts");
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
  stages_[stage].home = std::make_unique<StageRoute>(
      std::make_unique<SplitStage>(owners.devices, SplitGraph(whole, owners.ops, sees_rows)));
  SplitStage& split = *stages_[stage].home->split();
  split.SetExperts(stages_[stage].experts.get());
  split.CountExperts();
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
      const auto needs = Segment::Query(*loads_[i].device, graphs[i].graph);
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
  const auto warn = [&](const std::string& message) { host.Say(TRINE_LOG_WARNING, message); };
  const auto collect = [&] {
    for (size_t i = 0; i < graphs->size(); ++i) {
      for (const WeightUse& use : (*graphs)[i].weights) {
        if (use.packed) packed_.Add(loads_[i].device, use.info, *use.packed);
      }
    }
  };
  for (size_t i = 0; options.pack && i < graphs->size(); ++i) {
    ChooseLayouts(*loads_[i].device, &(*graphs)[i], warn);
    const DividedExperts* const experts = stages_[load_stages_[i]].experts.get();
    if (experts == nullptr) continue;
    ClearLayouts(&(*graphs)[i],
                 [&](const WeightUse& use) { return experts->HasInPlace(use.info); });
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
                                       (places_.size() - 1) * pass_slots() * BorderBytes(), warn);
    packed_.Clear();  // some may have become plain
    collect();
    return s;
  };
  if (!options.pack_cache.empty() && !packed_.empty()) {
    // Checked before a device that cannot import the cache gets its copy.
    if (absl::Status s = check_memory(true); !s.ok()) return s;
    const absl::Status s = LoadPackCache(options.pack_cache, *file_, host, meter, &packed_);
    if (absl::IsCancelled(s)) return s;
    cached = s.ok();
    if (!cached && !absl::IsNotFound(s)) {
      keep_cache = !IsFaultOfCache(s);
      warn(absl::StrCat("pack cache ", options.pack_cache, ": ", s.message(), "; it is not used",
                        keep_cache ? "" : " and will be written anew if it can be"));
    }
  }
  if (!cached) {
    if (absl::Status s = check_memory(false); !s.ok()) return s;
  }
  absl::Status s = packed_.Allocate();
  if (absl::IsResourceExhausted(s)) {  // nothing of the file has been released yet
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

// Returns the bytes of one pass slot: the hidden state of the largest pass.
uint64_t Model::BorderBytes() const {
  return static_cast<uint64_t>(limits_.max_tokens) * static_cast<uint64_t>(config_.n_embd) *
         sizeof(float);
}

absl::Status Model::MakeBorders() {
  for (size_t i = 0; i + 1 < places_.size(); ++i) {
    auto border = StageBorder::Create(pass_slots(), BorderBytes(),
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

absl::StatusOr<WeightPlace> Model::PlacePlain(const SegmentPlace& place, size_t stage,
                                              const WeightUse& use,
                                              const OutOfRange& out_of_range) {
  DividedExperts* const experts = stages_[stage].experts.get();
  const bool canon = out_of_range.count(use.info) != 0;
  if (experts == nullptr || !experts->HasInSlots(use.info)) {
    plain_.insert(use.info);
    return store_->Place(place.device, *use.info, use.as_f32, canon);
  }
  const auto where = store_->PlaceCopy(place.device, *use.info, use.as_f32, canon);
  if (!where.ok()) return where.status();
  experts->Loaded(use.info, place.device, where->span, where->tensor_offset, std::nullopt,
                  canon || !file_->mapped());
  return where;
}

absl::Status Model::LoadGraph(const SegmentPlace& place, size_t index, SegmentGraph graph,
                              const OutOfRange& out_of_range) {
  Stage* const stage = &stages_[index];
  std::vector<SlotMemory> memory;
  for (const WeightUse& use : graph.weights) {
    const SlotId slot = graph.graph.SlotOf(use.tensor);
    if (use.packed) {
      const PackedWeight& packed = *packed_.Find(place.device.get(), use.info, use.packed->id());
      memory.push_back({slot, packed.span});
      if (stage->experts == nullptr || !stage->experts->HasInSlots(use.info)) continue;
      // A cache that the device has imported is not written to.
      const bool fixed = packed.buffer == nullptr || out_of_range.count(use.info) != 0;
      stage->experts->Loaded(use.info, place.device, packed.span, 0, *use.packed,
                             fixed || !file_->mapped());
      continue;
    }
    const auto where = PlacePlain(place, index, use, out_of_range);
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
  auto segment = Segment::Create(place.device, std::move(graph.graph), memory);
  if (!segment.ok()) return segment.status();
  const uint64_t own = (*segment)->needs().scratch_bytes + (*segment)->needs().io_bytes;
  scratch_bytes_ += own;
  device_bytes_[place.device.get()] += own;
  stage->home =
      std::make_unique<StageRoute>(place.device_name, graph.io, *std::move(segment), *bound);
  if (limits_.count_experts) stage->home->CountExperts(std::move(graph.routed));
  return absl::OkStatus();
}

absl::Status Model::LockWeights() const {
  if (packed_.empty() && store_->arena_bytes() == 0) return file_->Lock();
  std::vector<absl::Span<const std::byte>> ranges = packed_.Visible();
  // Some weights are used in slices, and one may be both packed for products and plain for picking
  // rows.
  for (const gguf::TensorInfo* t : plain_) ranges.push_back(store_->DataOf(*t));
  return gguf::FileMemory::LockRanges(ranges);
}

// Returns the memory that the device uses: its own weights, the caches of its stages, scratch and
// IO.
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

uint64_t Model::BytesOn(const std::string& device) const {
  const auto found = std::find_if(loads_.begin(), loads_.end(), [&](const SegmentPlace& load) {
    return load.device_name == device;
  });
  return found == loads_.end() ? 0 : BytesOn(*found->device);
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
  const std::optional<RoutePlan>& plan = stages_[stage].plan;
  if (plan && plan->kind != RouteKind::kFetched) names.push_back(plan->helper.name);
  return names;
}

bool Model::IsExact(size_t stage) const {
  const Stage& s = stages_[stage];
  return s.home->exact() && std::all_of(s.helped.begin(), s.helped.end(),
                                        [](const auto& route) { return route->exact(); });
}

std::set<std::string> Model::Devices() const {
  std::set<std::string> names;
  for (size_t i = 0; i < stage_count(); ++i) {
    for (std::string& name : StageDevices(i)) names.insert(std::move(name));
  }
  return names;
}

BusyDevice Model::Busiest(size_t stage) const {
  const StageRoute* route = stages_[stage].current;
  return route == nullptr ? BusyDevice{places_[stage].device_name, {}} : route->Busiest();
}

std::vector<RouteInfo> Model::routes() const {
  std::vector<RouteInfo> infos;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const std::optional<RoutePlan>& plan = stages_[i].plan;
    if (!plan) continue;
    infos.push_back({i, plan->helper.name, plan->kind, plan->FirstTokens(),
                     plan->Helps(1, limits_.max_sequences),
                     plan->Helps(limits_.max_sequences + 1, limits_.max_tokens)});
  }
  return infos;
}

}  // namespace trine
