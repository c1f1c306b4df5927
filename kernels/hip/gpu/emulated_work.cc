#include "kernels/hip/gpu/emulated_work.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "kernels/hip/gpu/emulated_device.h"
#include "kernels/hip/gpu/emulator.h"

namespace trine::hip::emulator {
namespace {

struct Queue {
  std::mutex running;              // by whoever does pending work
  std::mutex mutex;                // of what follows, and of streams' pending work
  std::vector<gpuStream> streams;  // in the order they were made
  uint64_t drawn = 0;
};
Queue& TheQueue() {
  static Queue queue;
  return queue;
}

Pace CurrentPace() {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  return TheMachine().settings.pace;
}

// Does a piece of work whose turn it is. Of a device that has failed none is done, but its events
// pass: nobody may hang.
gpuError Do(const Work& work, int device) {
  gpuError error = gpuSuccess;
  if (work.run != nullptr) {
    error = FailureOf(device);
    if (error == gpuSuccess) error = work.run();
  }
  if (work.recorded != nullptr) {
    const std::lock_guard<std::mutex> lock(TheQueue().mutex);
    work.recorded->time = std::chrono::steady_clock::now();
    ++work.recorded->passed;
  }
  return error;
}

bool CanGoOn(const Stream& stream) {
  if (stream.pending.empty()) return false;
  const Work& next = stream.pending.front();
  return next.awaited == nullptr || next.awaited->passed >= next.target;
}

// The stream that goes on next, or null; within the queue's mutex.
gpuStream Next(Pace pace) {
  Queue& q = TheQueue();
  std::vector<gpuStream> ready;
  std::copy_if(q.streams.begin(), q.streams.end(), std::back_inserter(ready),
               [](gpuStream stream) { return CanGoOn(*stream); });
  if (ready.empty()) return nullptr;
  if (pace == Pace::kNewest) return ready.back();
  if (pace != Pace::kRandom) return ready.front();
  q.drawn = (q.drawn + CurrentSettings().seed) * 6364136223846793005u + 1442695040888963407u;
  return ready[(q.drawn >> 33) % ready.size()];
}

// Until `done`, which is asked within the queue's mutex, or nothing can go on.
template <class Done>
void RunUntil(Done done) {
  Queue& q = TheQueue();
  const std::lock_guard<std::mutex> running(q.running);
  const Pace pace = CurrentPace();
  for (;;) {
    Work work;
    int device = 0;
    {
      const std::lock_guard<std::mutex> lock(q.mutex);
      if (done()) return;
      const gpuStream stream = Next(pace);
      if (stream == nullptr) return;
      work = std::move(stream->pending.front());
      stream->pending.pop_front();
      device = stream->device;
    }
    (void)Do(work, device);  // an error stays with the device
  }
}

}  // namespace

void AddStream(gpuStream stream) {
  static uint64_t made = 0;
  const std::lock_guard<std::mutex> lock(TheQueue().mutex);
  stream->number = ++made;
  TheQueue().streams.push_back(stream);
}

void RemoveStream(gpuStream stream) {
  Finish(stream);
  const std::lock_guard<std::mutex> lock(TheQueue().mutex);
  std::erase(TheQueue().streams, stream);
}

gpuError Submit(gpuStream stream, Work work) {
  if (stream == nullptr) return Do(work, CurrentDevice());
  if (stream->capturing != nullptr) {
    stream->capturing->works.push_back(std::move(work));
    return gpuSuccess;
  }
  Queue& q = TheQueue();
  {
    const std::lock_guard<std::mutex> lock(q.mutex);
    if (work.recorded != nullptr) ++work.recorded->recorded;
    if (work.awaited != nullptr) work.target = work.awaited->recorded;
    if (CurrentPace() != Pace::kAtOnce || !stream->pending.empty()) {
      stream->pending.push_back(std::move(work));
      return gpuSuccess;
    }
  }
  return Do(work, stream->device);
}

void Finish(gpuStream stream) {
  if (stream == nullptr) return FinishAll();
  RunUntil([=] { return stream->pending.empty(); });
}

void Finish(const Passing& event) {
  uint64_t target = 0;
  {
    const std::lock_guard<std::mutex> lock(TheQueue().mutex);
    target = event.recorded;
  }
  RunUntil([&] { return event.passed >= target; });
}

void FinishAll() {
  RunUntil([] { return false; });
}

}  // namespace trine::hip::emulator
