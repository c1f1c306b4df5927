// Holds the state that the parts of a batcher share: the lock, its condition variables, the
// counters, and the type of a model in use.
//
// There is one lock for all parts. Owners take it when they call the batcher. The leader, which is
// the owner whose thread forms passes, holds it, except while it waits, delivers rows, prepares
// passes ahead, submits a pass or loads a model. No other thread touches the data that it then
// uses. A function that releases the lock for some time has it as its parameter, and holds it again
// when it returns. Threads of stages take the lock to report the end of a pass, and threads of the
// block keeper take it to report a fetch.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "dispatch/exec/pipeline.h"
#include "dispatch/exec/trace.h"
#include "runtime/batch/batcher_options.h"
#include "runtime/batch/stage_log.h"
#include "runtime/model/run/model.h"

namespace trine {

inline uint64_t Nanoseconds(std::chrono::steady_clock::duration time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

struct BatcherShared {
  explicit BatcherShared(BatcherOptions o) : options(std::move(o)) {}

  // Wakes the leader and all threads that wait on `changed`.
  void Announce() {
    news.notify_all();
    changed.notify_all();
  }

  // Records the end of work of the leader that began at `begin`: traces it if tracing is on, and
  // returns its duration in nanoseconds. Needs no lock.
  uint64_t Worked(const char* name, Trace::Clock::time_point begin,
                  std::initializer_list<Trace::Arg> args) {
    const auto end = Trace::Clock::now();
    if (options.trace != nullptr) options.trace->Add(track, name, begin, end, args);
    return Nanoseconds(end - begin);
  }

  const BatcherOptions options;
  Trace::Track track = 0;           // the track of the leader's work
  std::mutex mutex;                 // guards the members below, and the parts
  std::condition_variable news;     // wakes the leader: arrivals and finished passes
  std::condition_variable changed;  // wakes all other waiting threads
  bool arrivals = false;            // requests or blocks arrived since the leader's last step
  HostTimes times;
};

// A model with the pipeline that takes passes through its stages. The recovery owns it, and changes
// it only between two passes.
struct StagedModel {
  std::shared_ptr<Model> model;        // null while the next model is loaded, and if that failed
  std::unique_ptr<Pipeline> pipeline;  // null as `model` is, and while a new one is made
  std::shared_ptr<StageLog> log;
  uint64_t epoch = 0;  // the number of models so far
  // true: passes keep a copy of their rows, because stages with their own threads may run the next
  // pass before the rows are read. false: the leader runs the only stage itself.
  bool keep_rows = false;
};

// Returns the status of the call, or a status for what it throws.
template <typename Call>
absl::Status Quietly(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& e) {
    return absl::InternalError(e.what());
  } catch (...) {
    return absl::InternalError("something unknown was thrown");
  }
}

}  // namespace trine
