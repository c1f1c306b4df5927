#include "backends/cpu/team_run.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace trine::cpu {
namespace {

using Clock = std::chrono::steady_clock;
using reference::Range;

// How many portions of a big step each worker gets: enough that all workers end at about the same
// time even if the machine does other work, and few enough that taking one costs next to nothing.
constexpr int64_t kPortionsPerWorker = 8;
constexpr uint64_t kLeastPortionBytes = 128 * 1024;
// The number of rows that go through a chain together, so that they stay in the first-level cache.
constexpr int64_t kRowsAtATime = 4;

// The name that time reports give to waiting at barriers.
constexpr const char* kWaitName = "wait";

// Worker 0's stopwatch.
class Laps {
 public:
  uint64_t Lap() {
    const Clock::time_point now = Clock::now();
    const auto passed = now - std::exchange(last_, now);
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count());
  }

 private:
  Clock::time_point last_ = Clock::now();
};

void RunCalls(BoundChain& chain, Share share, Laps* laps) {
  for (BoundCall& call : chain.calls) {
    call.function(call.call, share);
    if (laps != nullptr) call.timed_ns += laps->Lap();
  }
}

void RunParts(BoundChain& chain, Range range, int64_t parts, Laps* laps) {
  const int64_t most =
      chain.split == Split::kRows && chain.calls.size() > 1 ? kRowsAtATime : range.end;
  for (int64_t begin = range.begin; begin < range.end; begin += most) {
    const int64_t count = std::min(most, range.end - begin);
    RunCalls(
        chain,
        {static_cast<uint32_t>(begin), static_cast<uint32_t>(parts), static_cast<uint32_t>(count)},
        laps);
  }
}

// Runs parts [begin, end) of a step. Parts are numbered through all chains of the step in order.
void RunParts(BoundStep& step, Range range, uint32_t workers, Laps* laps) {
  int64_t first = 0;
  for (BoundChain& chain : step.chains) {
    const int64_t parts = chain.Parts(workers);
    const Range own = {std::max(range.begin - first, int64_t{0}),
                       std::min(range.end - first, parts)};
    if (own.begin < own.end) RunParts(chain, own, parts, laps);
    first += parts;
  }
}

int64_t Parts(const BoundStep& step, uint32_t workers) {
  int64_t parts = 0;
  for (const BoundChain& chain : step.chains) parts += chain.Parts(workers);
  return parts;
}

int64_t PortionOf(const BoundStep& step, int64_t parts, uint32_t workers) {
  uint64_t bytes = 0;
  for (const BoundChain& chain : step.chains) bytes += chain.weight_bytes;
  const uint64_t part_bytes = bytes / static_cast<uint64_t>(std::max<int64_t>(parts, 1)) + 1;
  // A step without weights is attention, which has cut itself into portions already.
  const int64_t least = bytes == 0 ? 1 : static_cast<int64_t>(kLeastPortionBytes / part_bytes);
  return std::max({int64_t{1}, least, parts / (kPortionsPerWorker * workers)});
}

void TellTimes(const trine_host& host, BoundStep* step) {
  for (BoundChain& chain : step->chains) {
    for (BoundCall& call : chain.calls) {
      host.op_done(host.self, call.name, std::exchange(call.timed_ns, 0));
    }
  }
}

}  // namespace

int64_t BoundChain::Parts(uint32_t workers) const {
  switch (split) {
    case Split::kColumns:
      return columns;
    case Split::kRows:
      return *rows;
    case Split::kShares:
      break;
  }
  // Late tokens of a prompt see more positions than early ones. So the work for many tokens is cut
  // into smaller shares.
  const OpCall& call = calls.front().call;
  const bool uneven = call.op->kind == TRINE_OP_ATTENTION &&
                      call.out[0]->dims[2] >= 4 * kPortionsPerWorker * workers;
  return uneven ? kPortionsPerWorker * workers : workers;
}

TeamRun::TeamRun(const trine_host& host, std::vector<BoundStep> steps)
    : host_(host), steps_(std::move(steps)), cursors_(host.worker_count) {
  for (const BoundStep& step : steps_) big_steps_ += step.big ? 1 : 0;
}

template <bool kTimed>
void TeamRun::Work(void* self, uint32_t worker, uint32_t workers) {
  TeamRun& run = *static_cast<TeamRun*>(self);
  const bool timed = kTimed && worker == 0;
  Laps clock;
  Laps* const laps = timed ? &clock : nullptr;
  uint32_t turn = run.turn_;
  for (BoundStep& step : run.steps_) {
    const int64_t parts = Parts(step, workers);
    if (workers == 1) {
      RunParts(step, {0, parts}, workers, laps);
    } else if (step.big && workers == run.cursors_.workers()) {
      run.cursors_.ForEachPortion(++turn, worker, parts, PortionOf(step, parts, workers),
                                  [&](Range portion) { RunParts(step, portion, workers, laps); });
    } else {
      // If there is only one part (a single token's rows), the first worker takes it.
      const auto end_of = [&](int64_t w) { return (parts * w + workers - 1) / workers; };
      RunParts(step, {end_of(worker), end_of(int64_t{worker} + 1)}, workers, laps);
    }
    if (timed) TellTimes(run.host_, &step);
    if (workers == 1 || &step == &run.steps_.back()) continue;
    if (timed) clock.Lap();
    run.host_.barrier(run.host_.self);
    if (timed) run.host_.op_done(run.host_.self, kWaitName, clock.Lap());
  }
}

trine_status TeamRun::Run() {
  const bool timed = sdk::WantsOpTimes(host_);
  const trine_status status =
      host_.parallel_run(host_.self, timed ? Work<true> : Work<false>, this);
  turn_ += big_steps_;
  return status;
}

}  // namespace trine::cpu
