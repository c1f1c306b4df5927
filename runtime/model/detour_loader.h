// Records the plans of a detour over what its stage has in memory already.
#ifndef TRINE_RUNTIME_MODEL_DETOUR_LOADER_H_
#define TRINE_RUNTIME_MODEL_DETOUR_LOADER_H_

#include <cstddef>
#include <memory>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/segment.h"
#include "runtime/model/detour_plan.h"
#include "runtime/model/packed_weights.h"
#include "runtime/model/stage_caches.h"
#include "runtime/model/stage_way.h"
#include "runtime/model/weight_store.h"

namespace trine {

class DetourLoader {
 public:
  // All outlive it. `changed`: weights of which devices have other bytes than the file.
  DetourLoader(const PackedWeights& packed, const std::set<const gguf::TensorInfo*>& changed,
               WeightStore* store, StageCaches* caches)
      : packed_(packed), changed_(changed), store_(*store), caches_(*caches) {}

  // `whole` is the stage's graph, not finished. Fails where that would take a second copy of the
  // stage's weights.
  absl::StatusOr<std::unique_ptr<StageWay>> Load(const SegmentPlace& home, const DetourPlan& plan,
                                                 size_t route, SegmentGraph whole);
  // For a graph of ops that run on the stage's own device, with all that it has already.
  absl::StatusOr<std::vector<SlotMemory>> BindAtHome(const std::shared_ptr<Device>& home,
                                                     SegmentGraph* graph);
  // Of all that were loaded, with IO; and what the helper has of it, with what it streams through.
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  uint64_t helper_bytes() const { return helper_bytes_; }

 private:
  absl::StatusOr<std::unique_ptr<StageWay>> LoadTwin(const DetourPlan& plan, SegmentGraph whole);
  absl::StatusOr<std::unique_ptr<StageWay>> LoadStreamed(const SegmentPlace& home,
                                                         const std::vector<bool>& away,
                                                         const NamedDevice& helper,
                                                         const SegmentGraph& whole);
  // The layouts in which the device has its weights.
  void FindLayouts(const Device& device, SegmentGraph* graph) const;
  enum class Uses { kShared, kStreamed, kOwn };  // what it may read beside what it has packed
  absl::StatusOr<std::vector<SlotMemory>> Bind(const std::shared_ptr<Device>& device, Uses uses,
                                               SegmentGraph* graph);

  const PackedWeights& packed_;
  const std::set<const gguf::TensorInfo*>& changed_;
  WeightStore& store_;
  StageCaches& caches_;
  uint64_t scratch_bytes_ = 0, helper_bytes_ = 0;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_DETOUR_LOADER_H_
