#include "runtime/batch/batcher.h"

#include <mutex>
#include <utility>

#include "runtime/batch/batch_request.h"
#include "runtime/batch/batcher_shared.h"
#include "runtime/batch/pass_former.h"
#include "runtime/batch/pass_scheduler.h"
#include "runtime/batch/recovery.h"

namespace trine {

// The recovery's destructor stops the pipeline. Passes that finish during that use the members that
// are declared before the recovery.
struct Batcher::Parts {
  explicit Parts(BatcherOptions options) : shared(std::move(options)) {}

  BatcherShared shared;
  PassFormer former{&shared};
  Recovery recovery{&shared};
  PassScheduler scheduler{&shared, &former, &recovery};
};

Batcher::Batcher(BatcherOptions options) : parts_(std::make_unique<Parts>(std::move(options))) {}
Batcher::~Batcher() = default;

absl::StatusOr<std::unique_ptr<Batcher>> Batcher::Create(std::shared_ptr<Model> model,
                                                         BatcherOptions options) {
  std::unique_ptr<Batcher> batcher(new Batcher(std::move(options)));
  Parts& parts = *batcher->parts_;
  if (Trace* trace = parts.shared.options.trace.get(); trace != nullptr) {
    parts.shared.track = trace->AddTrack("host");
  }
  if (absl::Status s = parts.recovery.Use(std::move(model)); !s.ok()) return s;
  if (absl::Status s = parts.scheduler.UseModel(); !s.ok()) return s;
  return batcher;
}

absl::Status Batcher::Evaluate(std::span<Sequence* const> sequences) {
  return parts_->scheduler.Ask(BatchRequest::Until::kAllDone, sequences);
}

absl::Status Batcher::EvaluateSome(std::span<Sequence* const> sequences) {
  return parts_->scheduler.Ask(BatchRequest::Until::kOneDone, sequences);
}

void Batcher::Drain(std::span<Sequence* const> sequences) {
  parts_->scheduler.Ask(BatchRequest::Until::kDrained, sequences).IgnoreError();
}

absl::Status Batcher::Replace(const Prepare& prepare, const LoadNext& load) {
  return parts_->scheduler.Replace(prepare, load);
}

absl::Status Batcher::ended() const {
  std::lock_guard lock(parts_->shared.mutex);
  return parts_->recovery.ended();
}

std::vector<SegmentCounters> Batcher::counters() const {
  std::lock_guard lock(parts_->shared.mutex);
  return parts_->recovery.counters();
}

HostTimes Batcher::host_times() const {
  std::lock_guard lock(parts_->shared.mutex);
  return parts_->shared.times;
}

}  // namespace trine
