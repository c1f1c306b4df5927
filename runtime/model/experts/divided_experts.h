// The divided experts of a stage: which experts home has, and the moves that keep the most chosen
// ones there. A move takes two steps, so that passes go on meanwhile: a slot is emptied and a
// thread packs the new expert's weights; a later pass begins by writing them to the slot. Until
// then the other device computes both experts. No result depends on where an expert is.
//
// A home that reads the experts where the other device reads them has no slots: each pass divides
// the experts that it uses, and nothing is moved.
//
// One thread at a time may call, between passes, unless a comment says more.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "dispatch/exec/device_thread.h"
#include "plugins/handles.h"
#include "plugins/host_services.h"
#include "plugins/packed_layout.h"
#include "runtime/model/arch/segment_graph.h"
#include "runtime/model/experts/even_division.h"
#include "runtime/model/experts/expert_hits.h"
#include "runtime/model/experts/expert_slots.h"
#include "runtime/model/experts/pass_choices.h"
#include "runtime/model/experts/slot_tensors.h"

namespace trine {

// How experts are moved while a model runs.
struct ExpertMoves {
  uint64_t bytes_per_second = uint64_t{512} << 20;  // the most bytes to move; 0: none
};

class DividedExperts {
 public:
  // `hits` counts for the whole model, and says which experts to begin with.
  DividedExperts(std::shared_ptr<ExpertHits> hits, ExpertMoves moves)
      : hits_(std::move(hits)), moves_(moves) {}
  ~DividedExperts();
  DividedExperts(const DividedExperts&) = delete;
  DividedExperts& operator=(const DividedExperts&) = delete;

  // Returns a tensor that stands for the first `count` experts of a weight. Its address stays.
  const gguf::TensorInfo* FirstExperts(const gguf::TensorInfo& all, int64_t count) {
    return tensors_.First(all, count);
  }
  // Adds the layers of the stage's graph, in their order.
  void Add(const std::vector<DividedLayer>& layers);
  // Returns whether a weight is one of slots.
  bool HasInSlots(const gguf::TensorInfo* tensor) const { return tensors_.HasSome(tensor); }
  // Returns whether a weight stands for all experts of a layer, which home is to read in place.
  bool HasInPlace(const gguf::TensorInfo* tensor) const { return tensors_.HasAll(tensor); }
  // Tells where home has a weight of slots: from byte `offset` of `span` on, packed or plain.
  // `fixed`: the memory may not be written, or its values are corrected, so that the layer keeps
  // the experts that it has.
  void Loaded(const gguf::TensorInfo* in_slots, const std::shared_ptr<Device>& home,
              const trine_span& span, uint64_t offset, const std::optional<PackedLayout>& layout,
              bool fixed);
  // Brings the experts with the most hits to home, with the host's thread team. Call it once, after
  // all weights have been loaded.
  absl::Status Begin(const HostServices& host);

  // Divides the chosen experts of a layer, by its index among the layers, and adds the choice to
  // those of the pass when it is called for home.
  void Divide(size_t layer, std::span<const int32_t> ids, int64_t tokens, bool home,
              PassChoices* choices, int32_t* out);
  // Ends moves whose weights are ready, and begins the next ones. Fails only if home is lost.
  absl::Status BetweenPasses();

  size_t layers() const { return layers_.size(); }
  bool in_place() const { return !layers_.empty() && layers_[0].in_place.has_value(); }
  const ExpertSlots& slots(size_t layer) const { return layers_[layer].slots; }
  int64_t number(size_t layer) const { return layers_[layer].layer; }  // its number in the model
  // Counters; any thread may read them.
  uint64_t moved_experts() const { return moved_experts_; }
  uint64_t moved_bytes() const { return moved_bytes_; }
  uint64_t home_hits() const { return home_hits_; }
  uint64_t all_hits() const { return all_hits_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Weight {
    DividedLayer::Weight tensors;
    std::shared_ptr<Device> home;
    trine_span span{};
    uint64_t offset = 0;
    std::optional<PackedLayout> layout;
  };
  struct Layer {
    int64_t layer = 0;
    ExpertSlots slots;
    std::vector<Weight> weights;
    bool fixed = false;                    // no expert is moved
    std::optional<EvenDivision> in_place;  // present: there are no slots
  };
  // The most moves at a time: a pass waits while their weights are written.
  static constexpr size_t kMostMoves = 4;
  // A move whose weights are packed, or are being packed.
  struct Move {
    size_t layer = 0;
    int64_t slot = 0;
    int32_t expert = 0;
    std::vector<std::vector<std::byte>> packed;  // by weight
  };

  // Returns the bytes of an expert's weights at home.
  static uint64_t ExpertBytes(const Weight& weight);
  // Makes the bytes that a slot has when an expert is in it. Any thread may call.
  static absl::Status PackExpert(const Weight& weight, int64_t slot, int32_t expert,
                                 std::vector<std::byte>* packed);
  static absl::Status WriteSlot(const Weight& weight, int64_t slot,
                                const std::vector<std::byte>& packed);
  absl::Status PackMoves();  // on the packer's thread
  absl::Status EndMoves();
  absl::Status EndMove(const Move& move);
  void BeginMoves();
  // Chooses the next move; nullopt if none is worth it.
  std::optional<Move> NextMove();

  const std::shared_ptr<ExpertHits> hits_;
  const ExpertMoves moves_;
  SlotTensors tensors_;
  std::deque<Layer> layers_;
  std::vector<Move> under_way_;       // empty: the packer does not work
  std::atomic<bool> packed_ = false;  // the packer has packed all of them
  size_t next_layer_ = 0;             // the first layer to look at for the next move
  double budget_ = 0;                 // bytes that may be moved now
  Clock::time_point refilled_ = Clock::now();
  std::atomic<uint64_t> moved_experts_ = 0, moved_bytes_ = 0, home_hits_ = 0, all_hits_ = 0;
  std::unique_ptr<DeviceThread> packer_;  // null: not needed yet; destroyed first
  bool no_packer_ = false;                // the system refused a thread
};

}  // namespace trine
