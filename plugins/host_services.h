// The host's side of trine_host: a log, the thread team and a record of where time goes. One per
// process is the intent; every backend opened with it must be closed before it goes.
#ifndef TRINE_PLUGINS_HOST_SERVICES_H_
#define TRINE_PLUGINS_HOST_SERVICES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "plugins/thread_team.h"
#include "trine/backend.h"

namespace trine {

// Called from any thread, also from several at once.
using LogSink = std::function<void(uint32_t level, const std::string& message)>;

// What devices' runs have spent on one kind of work, as the threads saw it that led them.
struct OpTime {
  std::string name;  // "matmul q4_0", "attention", "wait", ...
  uint64_t calls = 0;
  uint64_t ns = 0;
};

class HostServices {
 public:
  HostServices(const ThreadTeamOptions& team, LogSink log);
  HostServices(const HostServices&) = delete;
  HostServices& operator=(const HostServices&) = delete;

  const trine_host* table() const { return &table_; }

  // From any thread; nothing after Silence.
  void Say(uint32_t level, const std::string& message) const;
  // Nothing is logged from here on; what is being said comes to its end first. For who goes while
  // backends stay. Not from within the sink.
  void Silence();

  // Leaves the team behind, with whatever hangs in it, and makes a new one: for a watchdog that has
  // given up on a device. Other devices' runs that were waiting for their turn go on with the new
  // team. From any thread.
  void ReplaceTeam();

  // Between the two, runs that begin are timed, of all backends that know how. Starting again
  // begins anew. Stop gives what was longest first; without a start, nothing. From any thread.
  void StartOpTimes();
  std::vector<OpTime> StopOpTimes();

 private:
  static void Log(void* self, uint32_t level, const char* message);
  static trine_status ParallelRun(void* self, trine_worker_fn fn, void* arg);
  static void Barrier(void* self);
  static void OpDone(void* self, const char* name, uint64_t nanoseconds);
  std::shared_ptr<ThreadTeam> team() const;

  ThreadTeamOptions options_;
  mutable std::mutex mutex_;
  std::shared_ptr<ThreadTeam> team_;     // guarded by mutex_
  mutable std::shared_mutex log_mutex_;  // shared while the sink is called
  LogSink log_;                          // guarded by log_mutex_
  uint32_t profiling_ = 0;  // plugins read it while it changes: by std::atomic_ref here
  std::mutex op_times_mutex_;
  std::map<std::string, OpTime, std::less<>> op_times_;  // by name; guarded by op_times_mutex_
  trine_host table_;
};

}  // namespace trine

#endif  // TRINE_PLUGINS_HOST_SERVICES_H_
