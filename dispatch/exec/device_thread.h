// Runs one task on its own thread, once for each Start, while the owner continues. One thread at a
// time may call Start and Finish.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugins/wait_word.h"

namespace trine {

class DeviceThread {
 public:
  // Each Start will run `task` once; an exception that it throws becomes INTERNAL. Returns
  // RESOURCE_EXHAUSTED if the system refuses a thread. `spins`: Start and Finish follow each other
  // within microseconds, and there are processors to spare for a thread that waits for them.
  static absl::StatusOr<std::unique_ptr<DeviceThread>> Create(std::function<absl::Status()> task,
                                                              bool spins = true);
  // REQUIRES: the task is not running. An object whose task never returns can't be destroyed.
  ~DeviceThread();
  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;

  // Start begins the task. Finish waits until it has ended, and returns its status. Each Start must
  // be followed by a Finish. The task sees what was written before Start; after Finish, the caller
  // sees what the task wrote.
  void Start();
  absl::Status Finish();

 private:
  DeviceThread(std::function<absl::Status()> task, bool spins);
  void Work();

  const std::function<absl::Status()> task_;
  const std::chrono::microseconds spin_;
  WaitWord started_, finished_;
  absl::Status result_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace trine
