#include <algorithm>
#include <thread>
#include <utility>

#include "plugins/fault/faulty_handles.h"
#include "trine/sdk/status.h"

namespace trine::fault {

void FaultyDevice::Fail(const std::string& message) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (lost.load()) return;
  why = message;
  lost.store(true);
  for (FaultyTimeline* timeline : timelines) {
    real().timeline_fail(timeline->handle, TRINE_UNAVAILABLE, why.c_str(), nullptr);
  }
}

trine_status FaultyDevice::NextFence(trine_point* out, trine_error* err) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (size_t i = 0; i < fences.size();) {
    uint64_t value = 0;
    if (real().timeline_query(fences[i].timeline, &value, nullptr) != TRINE_OK) {
      real().timeline_destroy(fences[i].timeline);  // its work was not run: a failure stays
      fences.erase(fences.begin() + static_cast<ptrdiff_t>(i));
      continue;
    }
    if (value >= fences[i].value) {
      *out = {fences[i].timeline, ++fences[i].value};
      return TRINE_OK;
    }
    ++i;
  }
  trine_timeline* timeline = nullptr;
  const trine_status status = real().timeline_create(handle, 0, &timeline, err);
  if (status != TRINE_OK) return status;
  fences.push_back({timeline, 1});
  *out = {timeline, 1};
  return TRINE_OK;
}

void FaultyDevice::DropFence(const trine_point& fence) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (Fence& f : fences) {
    if (f.timeline == fence.timeline) --f.value;
  }
}

bool FaultyDevice::Idle() {
  const std::lock_guard<std::mutex> lock(mutex);
  return std::all_of(fences.begin(), fences.end(), [&](const Fence& fence) {
    return real().timeline_wait(fence.timeline, fence.value, 0, nullptr) != TRINE_DEADLINE_EXCEEDED;
  });
}

void FaultyDevice::Drain() {
  if (!lost.load() && (!hung.load() || Idle())) return;
  Fail("given up while a run hung");  // so that work which waits for the host ends
  AwaitWork();
}

void FaultyDevice::AwaitWork() {
  const std::lock_guard<std::mutex> lock(mutex);
  for (const Fence& fence : fences) {
    real().timeline_wait(fence.timeline, fence.value, UINT64_MAX, nullptr);
    real().timeline_destroy(fence.timeline);
  }
  fences.clear();
}

void FaultyDevice::Reclaim() {
  Fail("given up");
  while (waiters.load() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  AwaitWork();
  for (FaultyPlan* plan : plans) {
    real().plan_destroy(plan->handle);
    delete plan;
  }
  for (FaultyBuffer* buffer : buffers) {
    real().buffer_free(buffer->handle);
    delete buffer;
  }
  for (FaultyTimeline* timeline : timelines) {
    real().timeline_destroy(timeline->handle);
    delete timeline;
  }
  real().device_close(handle);
}

}  // namespace trine::fault
