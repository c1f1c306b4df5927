// Inside the emulated runtime: what streams hold, and when it is done.
#ifndef TRINE_KERNELS_HIP_GPU_EMULATED_WORK_H_
#define TRINE_KERNELS_HIP_GPU_EMULATED_WORK_H_

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/hip/gpu/emulated_runtime.h"

namespace trine::hip::emulator {

// Recorded so many times, and passed so many of them.
struct Passing {
  uint64_t recorded = 0, passed = 0;
  std::chrono::steady_clock::time_point time;
};

// A piece of work: a copy or a kernel, an event that is recorded, or one that is waited for.
struct Work {
  std::function<gpuError()> run;      // null for events
  std::shared_ptr<Passing> recorded;  // passes when the stream comes to it
  std::shared_ptr<Passing> awaited;   // the stream stands until it has passed `target` times
  uint64_t target = 0;
};

struct Graph {
  std::vector<Work> works;
};

struct Stream {
  int device = 0;
  uint64_t number = 0;
  std::unique_ptr<Graph> capturing;
  std::deque<Work> pending;
};

struct Event {
  std::shared_ptr<Passing> passing = std::make_shared<Passing>();
};

void AddStream(gpuStream stream);
void RemoveStream(gpuStream stream);

// Does the work, or keeps it, as the stream and the settings have it.
gpuError Submit(gpuStream stream, Work work);

// Until a stream, an event's last recording, or everything (null) is done.
void Finish(gpuStream stream);
void Finish(const Passing& event);
void FinishAll();

}  // namespace trine::hip::emulator

#endif  // TRINE_KERNELS_HIP_GPU_EMULATED_WORK_H_
