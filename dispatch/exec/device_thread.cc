#include "dispatch/exec/device_thread.h"

#include <pthread.h>

#include <exception>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

// Returns how long to spin before going to sleep. Steps follow each other within microseconds, so
// waiting threads spin if there are processors to spare.
std::chrono::microseconds Spin() {
  constexpr unsigned kSparing = 4;
  return std::chrono::microseconds(std::thread::hardware_concurrency() > kSparing ? 50 : 0);
}

}  // namespace

DeviceThread::DeviceThread(std::function<absl::Status()> task, bool spins)
    : task_(std::move(task)), spin_(spins ? Spin() : std::chrono::microseconds(0)) {}

absl::StatusOr<std::unique_ptr<DeviceThread>> DeviceThread::Create(
    std::function<absl::Status()> task, bool spins) {
  std::unique_ptr<DeviceThread> made(new DeviceThread(std::move(task), spins));
  try {
    made->thread_ = std::thread([self = made.get()] { self->Work(); });
#if defined(__linux__)
    pthread_setname_np(made->thread_.native_handle(), "trine-device");
#endif
  } catch (const std::system_error& e) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no thread for a device could be started: ", e.what()));
  }
  return made;
}

DeviceThread::~DeviceThread() {
  if (!thread_.joinable()) return;
  over_ = true;
  started_.Add(1);
  thread_.join();
}

void DeviceThread::Start() { started_.Add(1); }

absl::Status DeviceThread::Finish() {
  const uint32_t wanted = started_.Load();
  for (uint32_t now = finished_.Load(); now != wanted; now = finished_.Load()) {
    finished_.WaitWhile(now, spin_);
  }
  return result_;
}

void DeviceThread::Work() {
  for (uint32_t done = 0;; ++done) {
    started_.WaitWhile(done, spin_);
    if (over_) return;
    try {
      result_ = task_();
    } catch (const std::exception& e) {
      result_ = absl::InternalError(e.what());
    }
    finished_.Add(1);
  }
}

}  // namespace trine
