// Brings the pending tokens of sequences through the model, several sequences in one pass, and over
// several stages several passes at once. Threads that ask at the same time share passes: one of
// them leads, the others' tokens ride along. Who has waited longest is in every pass; the rest of
// it goes to those with the fewest pending tokens, so that a long prompt costs the others a pass
// and not its whole length.
#ifndef TRINE_RUNTIME_BATCHER_H_
#define TRINE_RUNTIME_BATCHER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/pipeline.h"
#include "runtime/model/model.h"
#include "runtime/pass_groups.h"
#include "runtime/passes_ahead.h"
#include "runtime/prefix_cache.h"
#include "runtime/sequence.h"
#include "runtime/stage_log.h"

namespace trine {

struct BatcherOptions {
  // The model to go on with after a device has failed (FaultyDevice of the status), or why there is
  // none. Sequences then read their tokens again. Without it, and after other failures, who was in
  // the pass is told and the others go on.
  std::function<absl::StatusOr<std::shared_ptr<Model>>(const absl::Status&)> recover;
  // A stage that takes longer with a pass is given up.
  std::chrono::milliseconds stage_limit = std::chrono::minutes(5);
  // The CPU is watched too, which costs it a thread where it is alone. It is slow at worst, and
  // hangs on purpose only.
  bool watch_cpu = false;
  // Most tokens of a pass that has some of sequences which decode, one token at a time: a prompt
  // that is read beside them goes in pieces of what they leave of it. One token for each sequence
  // where that is more. 0: as many as a pass holds. With a limit a single stage waits for those
  // that have just been given their logits, like several do, so that a piece does not go ahead of
  // them.
  int64_t mixed_tokens = 0;
  std::shared_ptr<Trace> trace;  // null: nobody looks
  // Where sequences that have a space share blocks; null: nowhere. Outlives the batcher, which
  // empties it when it goes on with another model.
  PrefixCache* prefix_cache = nullptr;
  // Where such sequences find blocks that are in no cache, and leave theirs; null: nowhere. Calls
  // into the batcher until it goes, and goes before the batcher does.
  BlockKeeper* keeper = nullptr;
};

// How the host spent its time around passes, over all placements. What it computes itself, as the
// CPU's device, is in SegmentCounters.
struct HostTimes {
  uint64_t prepare_ns = 0;  // making passes, when they are due
  uint64_t ahead_ns = 0;    // making them while others are under way
  uint64_t deliver_ns = 0;  // handing over what they gave
  uint64_t passes = 0;
  uint64_t passes_ahead = 0;  // of these, such as were made but for their tokens when they were due
  // With nothing to do:
  std::map<std::string, uint64_t> device_ns;  // until a device was through with a pass
  uint64_t owners_ns = 0;                     // until those that sample came back
  uint64_t blocks_ns = 0;                     // until kept blocks were there
};

class Batcher {
 public:
  static absl::StatusOr<std::unique_ptr<Batcher>> Create(std::shared_ptr<Model> model,
                                                         BatcherOptions options);
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // Returns when no sequence has pending tokens, or with the first error; sequences then keep what
  // has been evaluated. CANCELLED when one of them was. From any thread; a sequence is in one call
  // at a time.
  absl::Status Evaluate(std::span<Sequence* const> sequences);
  // Returns when at least one of them has no pending tokens. The others' passes go on meanwhile:
  // until a later call, or Drain, has brought them home, they may not be touched.
  absl::Status EvaluateSome(std::span<Sequence* const> sequences);
  // Waits until no pass holds tokens of these.
  void Drain(std::span<Sequence* const> sequences);

  // Puts another model into the place of this one, between two passes. First `prepare` is asked:
  // unless it says OK, all stays as it is, and what it says is returned. Then the model is let go
  // of, `load` gives the next one, and sequences read their tokens again. An error of `load` is the
  // end, as one of BatcherOptions::recover is; an end before it is over when this gives OK. Both
  // are called on any thread that is in a call.
  using Prepare = std::function<absl::Status()>;
  using LoadNext = std::function<absl::StatusOr<std::shared_ptr<Model>>()>;
  absl::Status Replace(const Prepare& prepare, const LoadNext& load);

  // Why there is no model to go on with, if there is none.
  absl::Status ended() const;
  // Of the segments as they are placed now; none while they are placed anew.
  std::vector<SegmentCounters> counters() const;
  HostTimes host_times() const;

 private:
  // How often a leader that waits looks whether a stage hangs.
  static constexpr std::chrono::milliseconds kLookout{50};

  enum class Until { kAllDone, kOneDone, kDrained };
  struct Request {
    Until until = Until::kAllDone;
    std::vector<Sequence*> left;  // with pending tokens, or in a pass
    int64_t longest = 0;          // tokens of one of them, when it came
    absl::Status status;
    bool one_done = false;
    bool done = false;
    std::condition_variable wake;  // when it is done, or may lead

    void Begin() {
      left.clear();
      status = absl::OkStatus();
      one_done = done = false;
    }
  };
  // A block that is full with a pass, to be kept.
  struct Filled {
    int64_t number;  // in the sequence
    std::shared_ptr<const KvBlockBytes> bytes;
  };
  // One whose owner has logits that it has not come back from. A name only: it may be gone.
  struct Away {
    const Sequence* sequence;
    std::chrono::steady_clock::time_point since;
  };
  // A sequence's share of a pass.
  struct Share {
    Sequence* sequence = nullptr;
    int64_t begin = 0;  // the position of its first token
    int64_t n_tokens = 0;
    size_t first_row = 0;  // of its output rows
    size_t n_rows = 0;
    std::vector<Filled> filled = {};
  };
  struct Candidate {
    Request* request;
    Sequence* sequence;
    size_t arrival;  // how many there were before it
  };
  // A call of Replace.
  struct Replacement {
    const Prepare& prepare;
    const LoadNext& load;
    absl::Status status;
    bool done = false;
  };
  class Flight;
  using Landed = std::pair<std::shared_ptr<Flight>, Share>;

  explicit Batcher(BatcherOptions options) : options_(std::move(options)) {}
  bool CanRecover(const absl::Status& status) const;
  absl::Status SetModel(std::shared_ptr<Model> model);
  absl::Status Ask(Until until, std::span<Sequence* const> sequences);
  std::unique_ptr<Request> IdleRequest();
  void Leave(std::unique_lock<std::mutex>& lock, Request* request, bool leads);
  void Announce();
  void HandOver();

  void Step(std::unique_lock<std::mutex>& lock);
  bool TakeOff(std::unique_lock<std::mutex>& lock);
  int64_t UnderWay() const;
  std::optional<std::chrono::steady_clock::time_point> ExpectedBack();
  bool AnyFresh() const;
  // One that has been with a pass for too long, and the device it waits for.
  std::optional<std::pair<Pipeline::Running, std::string>> HungStage() const;
  void AwaitLanding(std::unique_lock<std::mutex>& lock);
  uint64_t* WaitsFor();  // the time that it counts as
  void Land(std::unique_lock<std::mutex>& lock);
  void TakeHome();
  void BringHome(std::unique_lock<std::mutex>& lock);
  void Tell(const Sequence* sequence, const absl::Status& status);
  static absl::Status DeliverQuietly(const Flight& flight, const Share& share);
  static void Deliver(const Flight& flight, const Share& share);
  void Recover(std::unique_lock<std::mutex>& lock);
  void RunReplacement(std::unique_lock<std::mutex>& lock);
  absl::Status LoadAnew(std::unique_lock<std::mutex>& lock, const LoadNext& load);
  void EndWith(const absl::Status& status);
  bool Settle();
  static bool IsServed(const Request& request);
  void SendAway(const Request& request);

  void FindCandidates();
  bool BringUpToDate(Sequence* sequence);
  bool AwaitsBlocks(Sequence* sequence);
  void SaveFilled(Batch* batch, Share* share) const;
  void KeepFilled(const Share& share) const;
  size_t FreePlace() const;
  std::shared_ptr<Flight> FormFlight();
  std::shared_ptr<Flight> IdleFlight();
  void MakeAhead(std::unique_lock<std::mutex>& lock);
  bool Foresee(const Flight& flight);
  bool TakeShare(const Candidate& candidate, int64_t most_tokens, int64_t rows_left, Batch* batch,
                 Share* share);
  int64_t MostSequences(int64_t passes);
  int64_t MostTokens(int64_t pending) const;
  bool AnyDecodes() const;
  void ReserveForDecode(size_t passes, size_t sequences);

  const BatcherOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable news_;     // for who leads: arrivals and landings
  std::condition_variable changed_;  // for the rest of those that wait
  std::shared_ptr<Model> model_;
  std::unique_ptr<Pipeline> pipeline_;
  PassGroups groups_{1};
  int64_t fetch_tokens_ = 0;  // of a pass for which a device fetches weights
  bool keep_rows_ = false;
  std::shared_ptr<StageLog> log_;       // of the stages of model_
  Trace::Track track_ = 0;              // of the leader's work
  Replacement* replacement_ = nullptr;  // waits for passes to land; nobody takes off
  HostTimes times_;
  uint64_t epoch_ = 0;   // models so far
  uint64_t passes_ = 0;  // likewise
  std::vector<Request*> queue_;
  std::vector<Away> away_;
  // A pass that is not full waits for some of them until then.
  std::optional<std::chrono::steady_clock::time_point> next_look_;
  std::chrono::steady_clock::time_point watched_;  // when stages were last looked at
  bool awaits_blocks_ = false;                     // some that would be in a pass do
  bool arrivals_ = false;  // in the queue, or of blocks, since the leader's last step
  std::vector<std::shared_ptr<Flight>> flights_;  // in the order in which they took off
  PassesAhead ahead_;
  absl::Status failure_;  // of passes of this model
  absl::Status ended_;    // not OK: there is no model left to go on with
  bool leading_ = false;  // someone runs passes

  // What steps use again, so that none of them allocates once there were some like it.
  std::vector<std::unique_ptr<Request>> idle_requests_;
  size_t requests_ = 0;                                // with those in use
  std::vector<std::shared_ptr<Flight>> idle_flights_;  // of this model; a stage may be leaving it
  std::vector<Candidate> candidates_;                  // all that wait, as they are served
  std::vector<const Sequence*> active_;
  std::vector<Landed> home_;
  std::vector<std::pair<const Sequence*, absl::Status>> failed_;
  Batch batch_, next_batch_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_BATCHER_H_
