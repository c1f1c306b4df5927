#include "runtime/model/experts/divided_experts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "kernels/quant/dequantize.h"
#include "runtime/model/weights/load_progress.h"
#include "runtime/model/weights/team_pieces.h"

namespace trine {
namespace {

// Returns the address at which a tensor would begin whose bytes from `offset` on are at `part`.
std::byte* WholeOf(const std::byte* part, uint64_t offset) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(part) - offset);
}

int64_t ExpertsOf(const gguf::TensorInfo& tensor) { return tensor.dims[tensor.rank - 1]; }

uint64_t FileBytes(const gguf::TensorInfo& all) {
  return all.bytes / static_cast<uint64_t>(ExpertsOf(all));
}

uint64_t Groups(const PackedLayout& layout, const gguf::TensorInfo& in_slots) {
  return layout.groups() / static_cast<uint64_t>(ExpertsOf(in_slots));
}

}  // namespace

DividedExperts::~DividedExperts() {
  if (!under_way_.empty()) (void)packer_->Finish();
}

void DividedExperts::Add(const std::vector<DividedLayer>& layers) {
  for (const DividedLayer& divided : layers) {
    Layer& layer = layers_.emplace_back(Layer{divided.layer,
                                              ExpertSlots(divided.experts, divided.slots),
                                              {},
                                              divided.in_place,
                                              std::nullopt});
    if (divided.in_place) layer.in_place.emplace(divided.slots, divided.experts);
    for (const DividedLayer::Weight& tensors : divided.weights) {
      layer.weights.push_back({tensors, nullptr, {}, 0, std::nullopt});
    }
  }
}

void DividedExperts::Loaded(const gguf::TensorInfo* in_slots, const std::shared_ptr<Device>& home,
                            const trine_span& span, uint64_t offset,
                            const std::optional<PackedLayout>& layout, bool fixed) {
  for (Layer& layer : layers_) {
    for (Weight& weight : layer.weights) {
      if (weight.tensors.in_slots != in_slots) continue;
      weight.home = home;
      weight.span = span;
      weight.offset = offset;
      weight.layout = layout;
      // Groups of a layout that has other bytes for several matrices than for each can't be moved.
      const bool even =
          !layout || layout->packed_bytes() == layout->groups() * layout->group_bytes();
      layer.fixed = layer.fixed || fixed || !even;
    }
  }
}

uint64_t DividedExperts::ExpertBytes(const Weight& weight) {
  if (weight.layout) {
    return Groups(*weight.layout, *weight.tensors.in_slots) * weight.layout->group_bytes();
  }
  const gguf::TensorInfo& all = *weight.tensors.all;
  if (!weight.tensors.as_f32) return FileBytes(all);
  return static_cast<uint64_t>(all.dims[0] * all.Rows() / ExpertsOf(all)) * sizeof(float);
}

absl::Status DividedExperts::PackExpert(const Weight& weight, int64_t slot, int32_t expert,
                                        std::vector<std::byte>* packed) {
  const gguf::TensorInfo& all = *weight.tensors.all;
  const uint64_t bytes = FileBytes(all);
  const std::byte* plain = all.data + static_cast<uint64_t>(expert) * bytes;
  packed->resize(ExpertBytes(weight));
  if (weight.layout) {
    // The groups of the slot, from the rows of the expert.
    const uint64_t groups = Groups(*weight.layout, *weight.tensors.in_slots);
    const uint64_t begin = static_cast<uint64_t>(slot) * groups;
    return weight.home->Pack(*weight.layout, begin, begin + groups,
                             WholeOf(plain, static_cast<uint64_t>(slot) * bytes),
                             WholeOf(packed->data(), begin * weight.layout->group_bytes()));
  }
  if (weight.tensors.as_f32 && all.type != quant::Type::kF32) {
    const int64_t values = all.dims[0] * all.Rows() / ExpertsOf(all);
    quant::DequantizeRow(all.type, plain, values, reinterpret_cast<float*>(packed->data()));
    return absl::OkStatus();
  }
  std::memcpy(packed->data(), plain, packed->size());
  return absl::OkStatus();
}

absl::Status DividedExperts::WriteSlot(const Weight& weight, int64_t slot,
                                       const std::vector<std::byte>& packed) {
  const uint64_t at =
      weight.span.offset + weight.offset + static_cast<uint64_t>(slot) * packed.size();
  return weight.home->Call("buffer_write", &trine_plugin::buffer_write, weight.span.buffer, at,
                           static_cast<const void*>(packed.data()),
                           static_cast<uint64_t>(packed.size()));
}

absl::Status DividedExperts::Begin(const HostServices& host) {
  struct Task {
    Layer* layer;
    int64_t slot;
    int32_t expert;
  };
  std::vector<Task> tasks;
  for (Layer& layer : layers_) {
    layer.slots.Expect(hits_->OfLayer(layer.layer));
    if (layer.fixed) continue;
    for (const ExpertSlots::Exchange& exchange : layer.slots.ToTheMostChosen()) {
      layer.slots.Fill(exchange.slot, exchange.expert);
      tasks.push_back({&layer, exchange.slot, exchange.expert});
    }
  }
  if (tasks.empty()) return absl::OkStatus();
  LoadMeter meter(nullptr);
  const std::vector<TeamRange> ranges = {{tasks.size(), 1}};
  return RunPieces(
      ranges, host,
      [&](size_t, uint64_t begin, uint64_t end) {
        std::vector<std::byte> packed;
        for (uint64_t i = begin; i < end; ++i) {
          const Task& task = tasks[i];
          for (const Weight& weight : task.layer->weights) {
            absl::Status s = PackExpert(weight, task.slot, task.expert, &packed);
            if (s.ok()) s = WriteSlot(weight, task.slot, packed);
            if (!s.ok()) return s;
          }
        }
        return absl::OkStatus();
      },
      &meter);
}

void DividedExperts::Divide(size_t index, std::span<const int32_t> ids, int64_t tokens, bool home,
                            PassChoices* choices, int32_t* out) {
  Layer& layer = layers_[index];
  if (layer.in_place) {
    layer.in_place->Divide(ids, home, ExpertSlots::kNone, out);
  } else {
    layer.slots.Divide(ids, home, out);
  }
  if (!home) return;
  choices->Add(layer.layer, ids, {out, ids.size()});
  if (!layer.in_place) layer.slots.Notice(ids, tokens);
  all_hits_ += ids.size();
  const auto in_slots = static_cast<uint64_t>(
      std::count_if(out, out + ids.size(), [](int32_t id) { return id != ExpertSlots::kNone; }));
  home_hits_ += in_slots;
}

absl::Status DividedExperts::BetweenPasses() {
  if (moves_.bytes_per_second == 0 || no_packer_) return absl::OkStatus();
  if (!under_way_.empty() && packed_) {
    if (absl::Status s = EndMoves(); !s.ok()) return s;
  }
  if (under_way_.empty()) BeginMoves();
  return absl::OkStatus();
}

absl::Status DividedExperts::EndMoves() {
  absl::Status status = packer_->Finish();
  for (const Move& move : under_way_) {
    if (status.ok()) status = EndMove(move);
  }
  // Slots that were not filled stay empty, and the other device computes their experts.
  if (!status.ok()) no_packer_ = true;
  under_way_.clear();
  return FaultyDevice(status).empty() ? absl::OkStatus() : status;
}

absl::Status DividedExperts::EndMove(const Move& move) {
  Layer& layer = layers_[move.layer];
  uint64_t bytes = 0;
  for (size_t i = 0; i < layer.weights.size(); ++i) {
    const absl::Status s = WriteSlot(layer.weights[i], move.slot, move.packed[i]);
    if (!s.ok()) return s;
    bytes += move.packed[i].size();
  }
  moved_bytes_ += bytes;
  hits_->CountMove(bytes);
  layer.slots.Fill(move.slot, move.expert);
  ++moved_experts_;
  return absl::OkStatus();
}

absl::Status DividedExperts::PackMoves() {
  const absl::Cleanup ended = [this] { packed_ = true; };
  for (Move& move : under_way_) {
    const std::vector<Weight>& weights = layers_[move.layer].weights;
    move.packed.resize(weights.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      const absl::Status s = PackExpert(weights[i], move.slot, move.expert, &move.packed[i]);
      if (!s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

std::optional<DividedExperts::Move> DividedExperts::NextMove() {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const size_t index = next_layer_++ % layers_.size();
    Layer& layer = layers_[index];
    if (layer.fixed) continue;
    if (const auto exchange = layer.slots.Best()) {
      return Move{index, exchange->slot, exchange->expert, {}};
    }
  }
  return std::nullopt;
}

void DividedExperts::BeginMoves() {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - refilled_).count();
  refilled_ = now;
  // No more than a second's bytes are saved up.
  const auto rate = static_cast<double>(moves_.bytes_per_second);
  budget_ = std::min(budget_ + rate * seconds, rate);
  while (budget_ > 0 && under_way_.size() < kMostMoves) {
    auto move = NextMove();
    if (!move) break;
    Layer& layer = layers_[move->layer];
    layer.slots.Await(move->slot, move->expert);
    for (const Weight& weight : layer.weights) budget_ -= static_cast<double>(ExpertBytes(weight));
    under_way_.push_back(*std::move(move));
  }
  if (under_way_.empty()) return;
  if (packer_ == nullptr) {
    auto packer = DeviceThread::Create([this] { return PackMoves(); });
    if (!packer.ok()) {
      no_packer_ = true;
      under_way_.clear();
      return;
    }
    packer_ = *std::move(packer);
  }
  packed_ = false;
  packer_->Start();
}

}  // namespace trine
