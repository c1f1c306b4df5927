// A thread that does one thing at a time for another one, which goes on meanwhile.
#ifndef TRINE_DISPATCH_DEVICE_THREAD_H_
#define TRINE_DISPATCH_DEVICE_THREAD_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugins/wait_word.h"

namespace trine {

class DeviceThread {
 public:
  // `task` is what each Start is for; what it throws is INTERNAL. RESOURCE_EXHAUSTED when the
  // system refuses a thread.
  static absl::StatusOr<std::unique_ptr<DeviceThread>> Create(std::function<absl::Status()> task);
  // Not while the task is under way: a task that never returns keeps all of it.
  ~DeviceThread();
  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;

  // What is written before Start is there for the task, and what the task writes is there after
  // Finish. Each Start is followed by a Finish.
  void Start();
  absl::Status Finish();

 private:
  explicit DeviceThread(std::function<absl::Status()> task);
  void Work();

  const std::function<absl::Status()> task_;
  const std::chrono::microseconds spin_;
  WaitWord started_, finished_;
  absl::Status result_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace trine

#endif  // TRINE_DISPATCH_DEVICE_THREAD_H_
