#include "plugins/own_team.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <string>
#include <system_error>
#include <thread>

#include "plugins/team_runs.h"
#include "plugins/wait_word.h"

namespace trine {
namespace {

uint32_t ProcessorsHere() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return static_cast<uint32_t>(CPU_COUNT(&set));
#endif
  return std::thread::hardware_concurrency();  // 0: not known
}

// Replaces the zeros that stand for defaults.
ThreadTeamOptions WithDefaults(ThreadTeamOptions options) {
  if (options.workers == 0) options.workers = 1;
  if (options.processors == 0) options.processors = ProcessorsHere();
  return options;
}

void Bind(std::thread& thread, int cpu) {
#if defined(__linux__)
  if (cpu < 0 || cpu >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  // If the system refuses, the thread runs unbound.
  pthread_setaffinity_np(thread.native_handle(), sizeof(set), &set);
#else
  (void)thread;
  (void)cpu;
#endif
}

// Names the thread, which would otherwise have the name of the thread that loaded the model.
void Name(std::thread& thread, uint32_t worker) {
#if defined(__linux__)
  const std::string name = "trine-cpu-" + std::to_string(worker % 100000);
  pthread_setname_np(thread.native_handle(), name.c_str());
#else
  (void)thread;
  (void)worker;
#endif
}

}  // namespace

struct OwnTeam::State {
  explicit State(const ThreadTeamOptions& options) : runs(options.workers, options.processors) {}

  TeamRuns runs;
  std::vector<std::thread> threads;
  // Published in this order, after what TeamRuns keeps of the run. Workers wait for `generation` to
  // change.
  std::atomic<uint32_t> run{0};
  std::atomic<bool> stop{false};
  alignas(TeamRuns::kApart) WaitWord generation;
  alignas(TeamRuns::kApart) WaitWord running;  // workers still in the run, the caller not counted

  void Publish() {
    running.Store(runs.workers() - 1);
    run.fetch_add(1, std::memory_order_release);
    if (runs.workers() > 1) generation.Add(1);
  }

  void Work(uint32_t worker) {
    uint32_t seen = 0, done = 0;
    for (;;) {
      generation.WaitWhile(seen, runs.PatienceBetweenRuns(worker));
      seen = generation.Load();
      // Runs even when `stop` is set: the Run that published this waits for it.
      if (const uint32_t now = run.load(std::memory_order_acquire); now != done) {
        done = now;
        runs.Share(worker);
        running.Add(UINT32_MAX);  // subtracts 1
      }
      if (stop.load(std::memory_order_acquire)) return;
    }
  }

  void WaitAllDone() {
    for (uint32_t left; (left = running.Load()) != 0;) {
      running.WaitWhile(left, runs.PatienceInRun(0));
    }
  }
};

OwnTeam::OwnTeam(const ThreadTeamOptions& options)
    : options_(WithDefaults(options)), state_(std::make_shared<State>(options_)) {
  for (uint32_t w = 1; w < options_.workers; ++w) {
    try {
      state_->threads.emplace_back([state = state_, w] { state->Work(w); });
    } catch (const std::system_error&) {
      break;
    }
    Name(state_->threads.back(), w);
    if (!options_.cpus.empty()) {
      Bind(state_->threads.back(), options_.cpus[w % options_.cpus.size()]);
    }
  }
  options_.workers = static_cast<uint32_t>(state_->threads.size()) + 1;
  state_->runs.set_workers(options_.workers);
}

OwnTeam::~OwnTeam() {
  if (state_->threads.empty() || !state_->threads.front().joinable()) return;
  state_->stop.store(true, std::memory_order_release);
  state_->generation.Add(1);
  for (std::thread& thread : state_->threads) thread.join();
}

uint32_t OwnTeam::workers() const { return options_.workers; }

absl::Status OwnTeam::Run(trine_worker_fn fn, void* arg) {
  // Keeps the state: an abandoned team's object may be destroyed before its last Run returns.
  const std::shared_ptr<State> state = state_;
  return state->runs.Run(
      fn, arg, [&] { state->Publish(); },
      [&] {
        state->runs.Share(0);
        state->WaitAllDone();
        return absl::OkStatus();
      });
}

void OwnTeam::Abandon() {
  if (!state_->runs.Abandon()) return;
  state_->stop.store(true, std::memory_order_release);
  // Idle workers end; a hung worker keeps its own reference to the state.
  state_->generation.Add(1);
  for (std::thread& thread : state_->threads) thread.detach();
}

std::shared_ptr<ThreadTeam> OwnTeam::MakeAnother() const {
  return std::make_shared<OwnTeam>(options_);
}

}  // namespace trine
