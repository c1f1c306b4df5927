#include "kernels/hip/gpu/emulated_device.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

#include "kernels/hip/gpu/emulator.h"

namespace trine::hip::emulator {
namespace {

thread_local int current_device = 0;

struct Queue {
  std::mutex running;              // held while pending work is done
  std::mutex mutex;                // guards the members below and the streams' pending work
  std::vector<gpuStream> streams;  // in order of creation
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

// Does a piece of work. A device that has failed does none, but its events pass, so that nothing
// hangs.
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

// Returns the stream that does work next, or null. REQUIRES: the caller holds the queue's mutex.
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

// Does pending work until done() returns true or no stream can continue. Holds the queue's mutex
// while it calls `done`.
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
    (void)Do(work, device);  // the device keeps the error
  }
}

}  // namespace

Machine& TheMachine() {
  static Machine machine;
  return machine;
}

int CurrentDevice() { return current_device; }
void SetCurrentDevice(int device) { current_device = device; }

gpuError Begin(Call call, int device) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  DeviceState& d = m.devices[device];
  if (d.failed != gpuSuccess) return d.failed;
  const uint64_t count = ++d.calls[call];
  if (call == Call::kNone || call != m.settings.failing || count < m.settings.failing_from ||
      device != static_cast<int>(m.settings.failing_device)) {
    return gpuSuccess;
  }
  if (call == Call::kMalloc || call == Call::kHostMalloc) return gpuErrorMemoryAllocation;
  if (call == Call::kRegister) return gpuErrorInvalidValue;
  m.failure = "a fault that was asked for";
  return d.failed = gpuErrorLaunchFailure;
}

gpuError CheckDevice(int device) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  return device >= 0 && device < static_cast<int>(m.settings.devices) ? gpuSuccess
                                                                      : gpuErrorInvalidValue;
}

gpuError Lose(int device, const std::string& why) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  m.failure = why;
  return m.devices[device].failed = gpuErrorLaunchFailure;
}

gpuError FailureOf(int device) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  return m.devices[device].failed;
}

bool IsPinned(const void* p, size_t bytes) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  auto found = m.pinned.upper_bound(p);
  if (found == m.pinned.begin()) return false;
  --found;
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(p) -
                                          static_cast<const std::byte*>(found->first));
  return offset <= found->second && bytes <= found->second - offset;
}

void Trace(const Done& done) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  if (m.tracing) m.trace.push_back(done);
}

void Reset(const DeviceSettings& settings) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  m.settings = settings;
  for (DeviceState& d : m.devices) {
    d.calls.clear();
    d.failed = gpuSuccess;
    d.peak = d.used;
  }
  m.failure.clear();
}

std::string LastFailure() {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  return TheMachine().failure;
}

uint64_t PeakBytes(int device) {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  return TheMachine().devices[device].peak;
}

void StartTrace() {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  TheMachine().trace.clear();
  TheMachine().tracing = true;
}

std::vector<Done> TakeTrace() {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  TheMachine().tracing = false;
  return std::exchange(TheMachine().trace, {});
}

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

bool HasPassed(const Passing& event) {
  const std::lock_guard<std::mutex> lock(TheQueue().mutex);
  return event.passed >= event.recorded;
}

void FinishAll() {
  RunUntil([] { return false; });
}

}  // namespace trine::hip::emulator
