// Implements trine_host: a log, the thread team and a record of how long ops take. Meant to exist
// once per process. Close every backend that was opened with it before destroying it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "plugins/own_team.h"
#include "plugins/thread_team.h"
#include "trine/backend.h"

namespace trine {

// Receives log messages, from any thread and from several at once.
using LogSink = std::function<void(uint32_t level, const std::string& message)>;

// The time that runs spent on one kind of work, as seen by the threads that called plan_run.
struct OpTime {
  std::string name;  // "matmul q4_0", "attention", "wait", ...
  uint64_t calls = 0;
  uint64_t ns = 0;
};

// Owns the thread team and the trine_host table that plugins call.
class HostServices {
 public:
  // Lends threads of Trine's own.
  HostServices(const ThreadTeamOptions& team, LogSink log);
  // Lends this team.
  HostServices(LogSink log, std::shared_ptr<ThreadTeam> team);
  HostServices(const HostServices&) = delete;
  HostServices& operator=(const HostServices&) = delete;

  const trine_host* table() const { return &table_; }
  // Returns the team, which ReplaceTeam replaces by one of the same kind and size.
  std::shared_ptr<const ThreadTeam> team() const { return Team(); }
  // Returns why the last parallel_run of the calling thread that failed did so, once; then "".
  // Plugins get only the number of the status.
  static std::string TakeWhyNotRun();

  // Logs a message; does nothing after Silence. Callable from any thread.
  void Say(uint32_t level, const std::string& message) const;
  // Stops all logging. Returns when the messages that are being logged are done. Call it if the
  // sink is destroyed before the backends are. Must not be called from within the sink.
  void Silence();

  // Abandons the team, with any call that hangs in it, and makes a new team. A watchdog calls it
  // when it gives up a device. Runs of other devices that wait for their turn use the new team.
  // Callable from any thread.
  void ReplaceTeam();

  // StartOpTimes makes backends time the runs that begin later, if they can, and drops earlier
  // times. StopOpTimes returns the times, the longest first; it returns none if there was no start.
  // Callable from any thread.
  void StartOpTimes();
  std::vector<OpTime> StopOpTimes();

 private:
  static void Log(void* self, uint32_t level, const char* message);
  static trine_status ParallelRun(void* self, trine_worker_fn fn, void* arg);
  static void Barrier(void* self);
  static void OpDone(void* self, const char* name, uint64_t nanoseconds);
  std::shared_ptr<ThreadTeam> Team() const;

  mutable std::mutex mutex_;
  std::shared_ptr<ThreadTeam> team_;     // guarded by mutex_
  mutable std::shared_mutex log_mutex_;  // held shared while the sink is called
  LogSink log_;                          // guarded by log_mutex_
  uint32_t profiling_ = 0;  // accessed through std::atomic_ref: plugins read it at any time
  std::mutex op_times_mutex_;
  std::map<std::string, OpTime, std::less<>> op_times_;  // by name; guarded by op_times_mutex_
  trine_host table_;
};

}  // namespace trine
