#include "plugins/callback_team.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugins/team_runs.h"
#include "plugins/wait_word.h"

namespace trine {
namespace {

// A mistake of the program's callback. A run reports the first one that it finds.
enum class Fault : uint32_t {
  kNone,
  kReturnedEarly,
  kTooLate,
  kNoSuchWorker,
  kSameWorker,
  kOtherThread,
  kThrew,
};

std::string Explain(Fault fault, uint32_t begun, uint32_t workers) {
  switch (fault) {
    case Fault::kReturnedEarly:
      return absl::StrCat("returned after ", begun, " of ", workers, " workers had begun");
    case Fault::kTooLate:
      return absl::StrCat("let ", begun, " of ", workers,
                          " workers begin: each needs a thread of its own, at the same time");
    case Fault::kNoSuchWorker:
      return absl::StrCat("called a worker that is not below ", workers);
    case Fault::kSameWorker:
      return "called one worker twice";
    case Fault::kOtherThread:
      return "called worker 0 on another thread than its own, or another worker on its own";
    case Fault::kThrew:
      return "threw an exception";
    case Fault::kNone:
      break;
  }
  return "";
}

void DoNothing(void*, uint32_t, uint32_t) {}

}  // namespace

// A run begins at a gate, where each worker waits until all are there. So a callback that does not
// call all workers at the same time is found out before any of them computes.
struct CallbackTeam::State : std::enable_shared_from_this<CallbackTeam::State> {
  State(const HostThreads& host, uint32_t processors_in)
      : threads(host),
        processors(processors_in),
        // Not known: the program that lends the threads has processors for them.
        runs(host.workers, processors_in == 0 ? host.workers : processors_in),
        claimed(host.workers) {}

  // Values of `gate`. It is shut before the first run.
  static constexpr uint32_t kShut = 0, kWait = 1, kGo = 2;

  const HostThreads threads;
  const uint32_t processors;
  TeamRuns runs;
  std::thread::id caller;                      // of the run
  std::vector<std::atomic<uint32_t>> claimed;  // by worker: the last run that it was in
  std::atomic<uint32_t> run{0};                // the number of the run
  std::atomic<Fault> fault{Fault::kNone};
  std::atomic<uint32_t> calls{0};  // of `Enter`, in the run
  bool is_kept = false;
  alignas(TeamRuns::kApart) std::atomic<uint32_t> begun{0};
  alignas(TeamRuns::kApart) WaitWord gate;
  alignas(TeamRuns::kApart) WaitWord present;  // calls of `Enter` that have not returned

  void Open() {
    caller = std::this_thread::get_id();
    begun.store(0, std::memory_order_relaxed);
    calls.store(0, std::memory_order_relaxed);
    fault.store(Fault::kNone, std::memory_order_relaxed);
    run.fetch_add(1, std::memory_order_relaxed);
    gate.Store(kWait);
  }

  // Notes a fault, and shuts the gate if it is not open yet.
  void Blame(Fault found) {
    Fault none = Fault::kNone;
    fault.compare_exchange_strong(none, found);
    gate.Change(kWait, kShut);
  }

  // Returns what is wrong with this call.
  Fault Claim(uint32_t worker) {
    if (worker >= runs.workers()) return Fault::kNoSuchWorker;
    if ((worker == 0) != (std::this_thread::get_id() == caller)) return Fault::kOtherThread;
    const uint32_t now = run.load(std::memory_order_relaxed);
    return claimed[worker].exchange(now) == now ? Fault::kSameWorker : Fault::kNone;
  }

  // Waits at the gate. Returns whether the run goes ahead.
  bool Pass(uint32_t worker) {
    if (begun.fetch_add(1) + 1 == runs.workers()) gate.Change(kWait, kGo);
    if (!gate.WaitWhile(kWait, runs.PatienceInRun(worker), threads.begin_limit)) {
      Blame(Fault::kTooLate);
    }
    return gate.Load() == kGo;
  }

  void Enter(uint32_t worker) {
    present.Add(1);
    calls.fetch_add(1, std::memory_order_relaxed);
    // A call outside of a run finds the gate shut. It is late, and the run that it belongs to has
    // failed.
    if (gate.Load() != kShut) {
      const Fault found = Claim(worker);
      if (found != Fault::kNone) Blame(found);
      if (found == Fault::kNone && Pass(worker)) runs.Share(worker);
    }
    present.Add(UINT32_MAX);  // subtracts 1
  }

  void WaitAllGone() {
    for (uint32_t left; (left = present.Load()) != 0;) {
      present.WaitWhile(left, runs.PatienceInRun(0));
    }
  }

  // Keeps this object until the program ends: the program has not made all calls of a run, and may
  // make them when the team is gone.
  void KeepForGood() {
    if (std::exchange(is_kept, true)) return;
    static std::mutex mutex;
    static auto* const kept = new std::vector<std::shared_ptr<State>>();
    const std::lock_guard<std::mutex> lock(mutex);
    kept->push_back(shared_from_this());
  }

  // Calls the callback, and returns when no worker runs any more.
  absl::Status CallHost() {
    int32_t returned = 0;
    try {
      returned = threads.parallel_run(
          [](void* arg, uint32_t worker) { static_cast<State*>(arg)->Enter(worker); }, this,
          runs.workers());
    } catch (...) {
      Blame(Fault::kThrew);
    }
    if (gate.Load() == kWait) Blame(Fault::kReturnedEarly);
    WaitAllGone();
    gate.Store(kShut);
    WaitAllGone();  // for calls that came before the gate was shut
    if (calls.load() < runs.workers()) KeepForGood();
    return Judge(returned);
  }

  absl::Status Judge(int32_t returned) const {
    const Fault found = fault.load();
    const uint32_t ran = begun.load();
    if (found == Fault::kNone && returned == 0) return absl::OkStatus();
    std::string text = Explain(found, ran, runs.workers());
    if (returned != 0 && (found == Fault::kNone || found == Fault::kReturnedEarly)) {
      text = absl::StrCat("returned ", returned,
                          ran == 0 ? ": it has no threads to lend at present"
                                   : ", which is not 0, and ran workers");
    }
    return absl::FailedPreconditionError(absl::StrCat("the program's parallel_run ", text));
  }
};

CallbackTeam::CallbackTeam(const HostThreads& threads, uint32_t processors)
    : state_(std::make_shared<State>(threads, processors)) {}

absl::StatusOr<std::shared_ptr<ThreadTeam>> CallbackTeam::Create(const HostThreads& threads,
                                                                 uint32_t processors) {
  if (threads.workers == 0) return absl::InvalidArgumentError("the program lends no threads");
  if (!threads.parallel_run) {
    return absl::InvalidArgumentError("the program lends threads without a parallel_run");
  }
  std::shared_ptr<ThreadTeam> team(new CallbackTeam(threads, processors));
  if (absl::Status s = team->Run(DoNothing, nullptr); !s.ok()) return s;
  return team;
}

uint32_t CallbackTeam::workers() const { return state_->runs.workers(); }

uint32_t CallbackTeam::processors() const { return state_->processors; }

absl::Status CallbackTeam::Run(trine_worker_fn fn, void* arg) {
  // Keeps the state: an abandoned team's object may be destroyed before its last Run returns.
  const std::shared_ptr<State> state = state_;
  return state->runs.Run(
      fn, arg, [&] { state->Open(); }, [&] { return state->CallHost(); });
}

void CallbackTeam::Abandon() { state_->runs.Abandon(); }

std::shared_ptr<ThreadTeam> CallbackTeam::MakeAnother() const {
  return std::shared_ptr<ThreadTeam>(new CallbackTeam(state_->threads, state_->processors));
}

}  // namespace trine
