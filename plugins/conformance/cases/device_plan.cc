#include "plugins/conformance/cases/device_plan.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"

namespace trine::conformance {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Returns `value` with its struct_size set and `padding` bytes of garbage after it.
template <class T>
Bytes Enlarged(T value, size_t padding) {
  value.struct_size = static_cast<uint32_t>(sizeof(T) + padding);
  return Spread(std::vector<T>{value}, padding);
}

uint32_t MemoryOf(uint32_t role) {
  switch (role) {
    case TRINE_ROLE_CONSTANT:
      return TRINE_MEMORY_WEIGHTS;
    case TRINE_ROLE_IO:
      return TRINE_MEMORY_IO;
    default:
      return TRINE_MEMORY_STATE;
  }
}

}  // namespace

PackedSync::PackedSync(const RunOptions& options)
    : waits_(Spread(options.waits, options.padding)),
      signals_(Spread(options.signals, options.padding)) {
  sync_.n_waits = static_cast<uint32_t>(options.waits.size());
  sync_.n_signals = static_cast<uint32_t>(options.signals.size());
  sync_.point_stride = static_cast<uint32_t>(sizeof(trine_point) + options.padding);
  sync_.waits = reinterpret_cast<const trine_point*>(waits_.data());
  sync_.signals = reinterpret_cast<const trine_point*>(signals_.data());
}

Answer Copy(Trial& trial, Session& session, const std::vector<trine_copy>& copies,
            const trine_sync& sync, size_t padding) {
  const Bytes spread = Spread(copies, padding);
  trine_copy_args args{};
  args.struct_size = sizeof(args);
  args.n_copies = static_cast<uint32_t>(copies.size());
  args.copy_stride = static_cast<uint32_t>(sizeof(trine_copy) + padding);
  args.copies = reinterpret_cast<const trine_copy*>(spread.data());
  args.sync = sync;
  if (sync.point_stride == 0) args.sync.point_stride = sizeof(trine_point);
  return session.Call(trial, "copy_run", &trine_plugin::copy_run, session.device(), &args);
}

trine_op_support QueryOp(Trial& trial, Session& session, const GraphSpec& graph, uint32_t op,
                         Answer* answer) {
  const PackedGraph packed(graph);
  trine_op_support support{};
  support.struct_size = sizeof(support);
  *answer = session.Call(trial, "op_query", &trine_plugin::op_query, session.device(), packed.get(),
                         op, nullptr, &support);
  support.reason[sizeof(support.reason) - 1] = 0;
  return support;
}

std::unique_ptr<DevicePlan> DevicePlan::TryCreate(Trial& trial, Session& session,
                                                  const GraphSpec& graph, const Images& images,
                                                  const PlanOptions& options, Answer* answer) {
  std::unique_ptr<DevicePlan> plan(new DevicePlan(session, graph));
  if (!plan->AllocateBuffers(trial, options.share_buffer) || !plan->Upload(trial, images)) {
    *answer = {TRINE_UNKNOWN, "the kit could not fill the buffers"};
    return nullptr;
  }
  *answer = plan->Make(trial, options);
  return answer->Ok() ? std::move(plan) : nullptr;
}

std::unique_ptr<DevicePlan> DevicePlan::Create(Trial& trial, Session& session,
                                               const GraphSpec& graph, const Images& images,
                                               const PlanOptions& options) {
  Answer answer;
  auto plan = TryCreate(trial, session, graph, images, options, &answer);
  trial.ExpectOk(answer, absl::StrCat("plan_create for ", graph.Describe()));
  return plan;
}

bool DevicePlan::AllocateBuffers(Trial& trial, bool share) {
  const uint64_t alignment = std::max<uint64_t>(session_.info().buffer_alignment, 1);
  uint64_t total = 0;
  for (const trine_slot& slot : graph_.slots) {
    places_.emplace_back();
    if (slot.role == TRINE_ROLE_TEMP) continue;
    for (uint32_t a = 0; a < slot.alternates; ++a) {
      places_.back().push_back({nullptr, share ? total : 0});
      total += RoundUp(slot.bytes, alignment) + alignment;
      if (share) continue;
      buffers_.push_back(session_.Alloc(trial, slot.bytes, MemoryOf(slot.role)));
      if (buffers_.back() == nullptr) return false;
      places_.back().back().buffer = buffers_.back().get();
    }
  }
  if (!share) return true;
  buffers_.push_back(session_.Alloc(trial, total, TRINE_MEMORY_STATE));
  if (buffers_.back() == nullptr) return false;
  for (auto& alternates : places_) {
    for (Place& place : alternates) place.buffer = buffers_.back().get();
  }
  return true;
}

Answer DevicePlan::Make(Trial& trial, const PlanOptions& options) {
  PackedGraph packed(graph_, options.padding);
  Bytes info_bytes = Enlarged(trine_plan_info{}, options.padding);
  auto* info = reinterpret_cast<trine_plan_info*>(info_bytes.data());
  Answer answer = session_.Call(trial, "plan_query", &trine_plugin::plan_query, session_.device(),
                                packed.get(), info);
  if (!answer.Ok()) return answer;

  trine_plan_desc desc{};
  if (info->scratch_bytes != 0) {
    trial.Expect(std::has_single_bit(info->scratch_alignment),
                 absl::StrCat("plan_query: scratch_alignment ", info->scratch_alignment,
                              " is no power of two"));
    scratch_ = session_.Alloc(trial, info->scratch_bytes, TRINE_MEMORY_STATE);
    if (scratch_ == nullptr) return {TRINE_UNKNOWN, "no scratch"};
    // Fills scratch with NaNs: memory of an earlier plan may hold the right results.
    const Bytes poison(info->scratch_bytes, std::byte{0xff});
    answer = session_.Write(trial, scratch_.get(), 0, poison.data(), poison.size());
    if (!answer.Ok()) return answer;
    desc.scratch = {scratch_.get(), 0, info->scratch_bytes};
  }
  std::vector<trine_binding> bindings;
  for (uint32_t s = 0; s < places_.size(); ++s) {
    for (uint32_t a = 0; a < places_[s].size(); ++a) {
      bindings.push_back(
          {s, a, {places_[s][a].buffer, places_[s][a].offset, graph_.slots[s].bytes}});
    }
  }
  Bytes binding_bytes = Spread(bindings, options.padding);
  desc.n_bindings = static_cast<uint32_t>(bindings.size());
  desc.binding_stride = static_cast<uint32_t>(sizeof(trine_binding) + options.padding);
  desc.graph = packed.get();
  desc.bindings = reinterpret_cast<const trine_binding*>(binding_bytes.data());
  Bytes desc_bytes = Enlarged(desc, options.padding);
  answer = session_.CreatePlan(trial, *reinterpret_cast<const trine_plan_desc*>(desc_bytes.data()),
                               &plan_);
  if (options.scribble) {
    packed.Scribble();
    std::fill(binding_bytes.begin(), binding_bytes.end(), kGarbage);
    std::fill(desc_bytes.begin(), desc_bytes.end(), kGarbage);
  }
  return answer;
}

Answer DevicePlan::Run(Trial& trial, const std::vector<int64_t>& params,
                       const RunOptions& options) {
  const PackedSync sync(options);
  trine_run_args args{};
  args.n_params = static_cast<uint32_t>(params.size());
  args.n_alternates = static_cast<uint32_t>(options.alternates.size());
  args.params = params.data();
  args.alternates = options.alternates.data();
  args.sync = sync.get();
  const Bytes bytes = Enlarged(args, options.padding);
  return session_.Call(trial, "plan_run", &trine_plugin::plan_run, plan_.get(),
                       reinterpret_cast<const trine_run_args*>(bytes.data()));
}

const DevicePlan::Place* DevicePlan::PlaceOf(uint32_t slot, uint32_t alternate) const {
  const auto& alternates = places_[slot];
  if (alternates.empty()) return nullptr;
  return &alternates[alternate < alternates.size() ? alternate : 0];
}

bool DevicePlan::Upload(Trial& trial, const Images& images, uint32_t alternate) {
  for (uint32_t s = 0; s < images.size(); ++s) {
    const Place* place = PlaceOf(s, alternate);
    if (place == nullptr || images[s].empty()) continue;
    const Answer answer =
        session_.Write(trial, place->buffer, place->offset, images[s].data(), images[s].size());
    if (!trial.ExpectOk(answer, "buffer_write")) return false;
  }
  return true;
}

bool DevicePlan::Download(Trial& trial, Images* images, uint32_t alternate) {
  images->resize(graph_.slots.size());
  for (uint32_t s = 0; s < images->size(); ++s) {
    const Place* place = PlaceOf(s, alternate);
    if (place == nullptr) continue;
    (*images)[s].assign(graph_.slots[s].bytes, std::byte{0});
    const Answer answer = session_.Read(trial, place->buffer, place->offset, (*images)[s].data(),
                                        (*images)[s].size());
    if (!trial.ExpectOk(answer, "buffer_read")) return false;
  }
  return true;
}

}  // namespace trine::conformance
