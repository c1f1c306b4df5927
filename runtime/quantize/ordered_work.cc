#include "runtime/quantize/ordered_work.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace trine::quantize {
namespace {

// Threads must not end by throwing, and a lack of memory must be reported, not end the program.
absl::Status Guarded(const OrderedJob& work, int64_t job, size_t slot) {
  try {
    return work(job, slot);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  }
}

class OrderedWork {
 public:
  OrderedWork(int64_t jobs, size_t slots, const OrderedJob& produce)
      : jobs_(jobs), produce_(produce), results_(slots) {}

  ~OrderedWork() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // Returns the number of threads started.
  size_t Start(uint32_t threads) {
    try {
      for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
    } catch (const std::exception&) {
      // Goes on with as many threads as the system allows.
    }
    return threads_.size();
  }

  // Waits until the job is done.
  absl::Status Take(int64_t job) {
    std::unique_lock lock(mutex_);
    Result& result = results_[Slot(job)];
    changed_.wait(lock, [&] { return result.done; });
    return result.status;
  }

  // Frees the job's slot.
  void Release(int64_t job) {
    {
      std::lock_guard lock(mutex_);
      results_[Slot(job)] = Result();
      released_ = job + 1;
    }
    changed_.notify_all();
  }

  size_t Slot(int64_t job) const { return static_cast<size_t>(job) % results_.size(); }

 private:
  struct Result {
    bool done = false;
    absl::Status status;
  };

  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || next_ == jobs_ || HasFreeSlot(); });
      if (stop_ || next_ == jobs_) return;
      const int64_t job = next_++;
      lock.unlock();
      absl::Status status = Guarded(produce_, job, Slot(job));
      lock.lock();
      results_[Slot(job)] = {true, std::move(status)};
      changed_.notify_all();
    }
  }

  bool HasFreeSlot() const { return next_ - released_ < static_cast<int64_t>(results_.size()); }

  const int64_t jobs_;
  const OrderedJob& produce_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Result> results_;  // by slot
  int64_t next_ = 0;             // the first job that has not begun
  int64_t released_ = 0;         // the first job that still needs its slot
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

absl::Status RunInOrder(int64_t jobs, uint32_t threads, const OrderedJob& produce,
                        const OrderedJob& consume) {
  OrderedWork work(jobs, SlotsFor(threads), produce);
  const bool alone = work.Start(threads) == 0;
  for (int64_t job = 0; job < jobs; ++job) {
    absl::Status status = alone ? Guarded(produce, job, work.Slot(job)) : work.Take(job);
    if (status.ok()) status = Guarded(consume, job, work.Slot(job));
    if (!status.ok()) return status;
    if (!alone) work.Release(job);
  }
  return absl::OkStatus();
}

}  // namespace trine::quantize
