// Serves owners in their order. Every call of an owner is a request in a queue. One of the owners
// is the leader: its thread takes the steps for all, while the others wait. When the leader's own
// request is done, it hands over to the owner of the oldest request. A step delivers rows, starts a
// pass, continues after a fault, or waits. The scheduler also knows which owners are away sampling.
// From that it decides when a pass is due, how large it may be, and how long a pass that is not
// full waits.
//
// Owns the requests. Uses the pass former and the recovery, which do not know the scheduler or each
// other. Any thread may call Ask and Replace without the lock. Other functions run under the lock,
// on the leader's thread unless they say otherwise.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/batch/batch_request.h"
#include "runtime/batch/batcher_shared.h"
#include "runtime/batch/owners_away.h"
#include "runtime/batch/pass_former.h"
#include "runtime/batch/pass_groups.h"
#include "runtime/batch/recovery.h"
#include "runtime/batch/sequence.h"

namespace trine {

class PassScheduler {
 public:
  using Prepare = std::function<absl::Status()>;

  PassScheduler(BatcherShared* shared, PassFormer* former, Recovery* recovery)
      : shared_(*shared), former_(*former), recovery_(*recovery) {}

  // Prepares for the model, or the new pipeline, that the recovery has now.
  absl::Status UseModel();
  // Makes a request and waits until it is done. Returns the request's status.
  absl::Status Ask(BatchRequest::Until until, std::span<Sequence* const> sequences);
  // See Batcher::Replace.
  absl::Status Replace(const Prepare& prepare, const Recovery::LoadNext& load);

 private:
  // A call of Replace.
  struct Replacement {
    const Prepare& prepare;
    const Recovery::LoadNext& load;
    absl::Status status;
    bool done = false;
  };

  // Requests and the leader. These run on the owner's thread.
  std::unique_ptr<BatchRequest> IdleRequest();
  std::unique_ptr<BatchRequest> Enqueue(BatchRequest::Until until,
                                        std::span<Sequence* const> sequences);
  void WaitOrLead(std::unique_lock<std::mutex>& lock, const bool& done,
                  std::condition_variable& wake, bool* leads);
  void Leave(std::unique_lock<std::mutex>& lock, BatchRequest* request);
  void HandOver(bool leads);
  static bool IsServed(const BatchRequest& request);
  bool Settle();
  void Tell(Sequence::Evaluation sequence, const absl::Status& status);

  // Steps.
  void Step(std::unique_lock<std::mutex>& lock);
  void FinishPasses(std::unique_lock<std::mutex>& lock);
  bool StartPass(std::unique_lock<std::mutex>& lock);
  void AwaitPass(std::unique_lock<std::mutex>& lock);
  uint64_t* WaitsFor();
  void RunReplacement(std::unique_lock<std::mutex>& lock);
  absl::Status GoOn(absl::Status status);

  // When a pass is due.
  std::optional<PassSize> DuePass();
  int64_t MostSequences(int64_t passes);
  bool AnyDecodes(const PassDemand& demand) const;
  void SendAway(const BatchRequest& request);

  BatcherShared& shared_;
  PassFormer& former_;
  Recovery& recovery_;
  std::vector<BatchRequest*> queue_;
  bool leading_ = false;                // a thread is the leader
  Replacement* replacement_ = nullptr;  // not null: no pass starts until it has run
  OwnersAway away_;
  PassGroups groups_{1};
  // The time until which a pass that is not full waits for owners that are sampling.
  std::optional<std::chrono::steady_clock::time_point> next_look_;
  bool awaits_blocks_ = false;                     // some sequences wait for fetched blocks
  std::chrono::steady_clock::time_point watched_;  // when stages were last checked

  // Memory that steps reuse, so that a step allocates nothing once a similar step has been taken.
  std::vector<std::unique_ptr<BatchRequest>> idle_requests_;
  size_t requests_ = 0;  // the number of requests, idle and in use
  std::vector<const Sequence*> active_;
};

}  // namespace trine
