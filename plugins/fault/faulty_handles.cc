// Decides what happens to a call before it reaches the plugin, and to a device that is lost.
#include "plugins/fault/faulty_handles.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "trine/sdk/status.h"

namespace trine::fault {
namespace {

struct TeamHang {
  HungCalls* calls;
  std::optional<std::chrono::milliseconds> limit;
};

// Hangs on one worker and returns on the others: the caller waits for all of them.
void HangInTeam(void* arg, uint32_t worker, uint32_t workers) {
  const auto& hang = *static_cast<const TeamHang*>(arg);
  if (worker + 1 == workers) hang.calls->Hang(hang.limit);
}

}  // namespace

trine_status CheckLost(FaultyDevice& device, trine_error* err) {
  if (!device.lost.load()) return TRINE_OK;
  return sdk::Fail(err, TRINE_UNAVAILABLE, device.why);
}

void Announce(FaultyDevice& device, const Strike& strike) {
  const trine_host* host = device.backend->host;
  std::string text =
      absl::StrCat("injected fault on ", device.faults->name(), ": ", strike.fault->text);
  if (strike.fault->kind != strike.kind) absl::StrAppend(&text, " (", KindName(strike.kind), ")");
  if (host != nullptr && host->log != nullptr) {
    host->log(host->self, TRINE_LOG_WARNING, text.c_str());
  }
}

void HangHere(FaultyDevice& device, const Strike& strike, bool team) {
  HungCalls& calls = device.injector().hung_calls();
  std::optional<std::chrono::milliseconds> limit;
  if (strike.kind == Kind::kTimeout) limit = strike.fault->time;
  device.faults->SetGone(*strike.fault);
  device.hung.store(true);
  const trine_host* host = device.backend->host;
  TeamHang hang{&calls, limit};
  if (!team || !strike.fault->in_team ||
      host->parallel_run(host->self, HangInTeam, &hang) != TRINE_OK) {
    calls.Hang(limit);
  }
  device.Fail(absl::StrCat("injected fault '", strike.fault->text, "': the device is lost"));
}

trine_status Meet(FaultyDevice& device, Moment moment, trine_error* err, Strike* out) {
  if (const trine_status s = CheckLost(device, err); s != TRINE_OK) return s;
  const Strike strike = device.faults->Count(moment);
  if (out != nullptr) *out = strike;
  if (strike.slow.count() != 0) std::this_thread::sleep_for(strike.slow);
  if (strike.fault == nullptr) return TRINE_OK;
  Announce(device, strike);
  switch (strike.kind) {
    case Kind::kOom:
      return sdk::Fail(err, TRINE_RESOURCE_EXHAUSTED,
                       absl::StrCat("injected fault '", strike.fault->text, "': out of memory"));
    case Kind::kLost:
      device.injector().Lose(&device, *strike.fault);
      return CheckLost(device, err);
    case Kind::kHang:
    case Kind::kTimeout:
      HangHere(device, strike, moment == Moment::kPlan);
      return CheckLost(device, err);
    case Kind::kGarbage:
      return strike.fault->junk == Junk::kStatus ? kNonsenseStatus : TRINE_OK;
    default:
      return TRINE_OK;
  }
}

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
      // Its work was not run, and a timeline that has failed stays so.
      real().timeline_destroy(fences[i].timeline);
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
  Fail("given up while a run hung");  // ends work that waits for the host
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
  const auto give_back = [](const auto& things, auto destroy) {
    for (auto* thing : things) {
      destroy(thing->handle);
      delete thing;
    }
  };
  give_back(plans, real().plan_destroy);
  give_back(buffers, real().buffer_free);
  give_back(timelines, real().timeline_destroy);
  real().device_close(handle);
}

}  // namespace trine::fault
