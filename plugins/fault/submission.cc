// Submissions through the wrapper: plan_run and copy_run of its table.
#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "plugins/fault/faulty_handles.h"
#include "trine/sdk/status.h"

namespace trine::fault {
namespace {

// The waits and signals of a submission, with the plugin's own timelines.
class Sync {
 public:
  Sync(const trine_plugin& real, const trine_sync& given)
      : real_(real),
        sync_(given),
        waits_(given.waits, given.n_waits, given.point_stride, Patch),
        signals_(given.signals, given.n_signals, given.point_stride, Patch) {
    sync_.waits = waits_.get();
    sync_.signals = signals_.get();
    readable_ = Readable(given.waits, given.n_waits) && Readable(given.signals, given.n_signals);
  }

  const trine_sync& get() const { return sync_; }
  // Returns false for an array that can't be read. Then the plugin refuses the call.
  bool readable() const { return readable_; }
  bool signals() const { return sync_.n_signals != 0; }

  void AddSignal(const trine_point& point) {
    signals_.Append(point, sync_.point_stride);
    sync_.signals = signals_.get();
    ++sync_.n_signals;
  }

  // Blocks until all waits are reached. Returns the status and reason of a wait that failed.
  trine_status Await(trine_error* err) const {
    for (uint32_t i = 0; i < sync_.n_waits; ++i) {
      const trine_point p = sdk::At(sync_.waits, sync_.point_stride, i);
      if (p.timeline == nullptr) continue;
      const trine_status status = real_.timeline_wait(p.timeline, p.value, UINT64_MAX, err);
      if (status != TRINE_OK) return status;
    }
    return TRINE_OK;
  }

  // Signals the signals, or fails them when `status` is not OK.
  void Settle(trine_status status, const char* message) const {
    for (uint32_t i = 0; i < sync_.n_signals; ++i) {
      const trine_point p = sdk::At(sync_.signals, sync_.point_stride, i);
      if (p.timeline == nullptr) continue;
      trine_error late{};
      const trine_status outcome =
          status == TRINE_OK ? real_.timeline_signal(p.timeline, p.value, &late) : status;
      if (outcome == TRINE_OK) continue;
      real_.timeline_fail(p.timeline, outcome, status == TRINE_OK ? late.message : message,
                          nullptr);
    }
  }

 private:
  static void Patch(trine_point* point) { point->timeline = RealOf(point->timeline); }
  bool Readable(const trine_point* points, uint32_t count) const {
    return count == 0 || (points != nullptr && sync_.point_stride >= sizeof(trine_point));
  }

  const trine_plugin& real_;
  trine_sync sync_;
  Translated<trine_point> waits_, signals_;
  bool readable_;
};

// Ends a submission that was not run because a wait failed. Returns the status of the call.
trine_status WaitFailed(const Sync& sync, trine_status status, const trine_error& why,
                        trine_error* err) {
  if (!sync.signals()) {
    return sdk::Fail(err, TRINE_ABORTED, absl::StrCat("a wait has failed: ", why.message));
  }
  sync.Settle(status, why.message);
  return TRINE_OK;
}

// Hangs. With signals the call returns and its signals never come; without, it does not return.
trine_status Hang(FaultyDevice& device, const Strike& strike, const Sync& sync, trine_error* err) {
  if (sync.signals() && !strike.fault->in_team) {
    device.faults->SetGone(*strike.fault);
    device.hung.store(true);
    if (strike.kind == Kind::kTimeout) device.injector().LoseAfter(&device, strike.fault->time);
    return TRINE_OK;
  }
  HangHere(device, strike, true);
  return sync.signals() ? TRINE_OK : CheckLost(device, err);
}

// Hangs a submission that waits in the queue for a run that hangs.
trine_status HangBehind(FaultyDevice& device, const Sync& sync, trine_error* err) {
  if (sync.signals()) return TRINE_OK;
  // Checks again after this time, because a driver's own limit may end the run that hangs.
  constexpr std::chrono::milliseconds kLook{10};
  while (!device.lost.load() && !device.injector().hung_calls().Hang(kLook)) {
  }
  device.Fail("let go behind a run that hung");
  return CheckLost(device, err);
}

// Carries out the fault that is due at a submission. Returns true if the fault ended it, and sets
// *status.
bool Struck(FaultyDevice& device, const Strike& strike, const Sync& sync, trine_error* err,
            trine_status* status) {
  if (strike.fault == nullptr) {
    if (!device.hung.load()) return false;
    *status = HangBehind(device, sync, err);
    return true;
  }
  Announce(device, strike);
  switch (strike.kind) {
    case Kind::kOom:
      *status = sdk::Fail(err, TRINE_RESOURCE_EXHAUSTED,
                          absl::StrCat("injected fault '", strike.fault->text, "': out of memory"));
      return true;
    case Kind::kLost:
      device.injector().Lose(&device, *strike.fault);
      // With signals the call succeeds, and the signals have failed.
      *status = sync.signals() ? TRINE_OK : CheckLost(device, err);
      return true;
    case Kind::kHang:
    case Kind::kTimeout:
      *status = Hang(device, strike, sync, err);
      return true;
    case Kind::kGarbage:
      *status = kNonsenseStatus;
      return strike.fault->junk == Junk::kStatus;
    default:
      return false;
  }
}

// Passes the submission to the plugin, with a fence when it may outlast the call.
template <class Run>
trine_status HandOn(FaultyDevice& device, Sync* sync, trine_error* err, Run run) {
  if (!device.async || !sync->signals() || !sync->readable()) return run(sync->get());
  trine_point fence{};
  if (const trine_status s = device.NextFence(&fence, err); s != TRINE_OK) return s;
  sync->AddSignal(fence);
  const trine_status status = run(sync->get());
  if (status != TRINE_OK) device.DropFence(fence);
  return status;
}

// Carries out the faults that are due before the plugin is called. Returns true if one ended the
// call, and sets *status.
bool MeetSubmission(FaultyDevice& device, const Strike& strike, const Sync& sync, trine_error* err,
                    trine_status* status) {
  if (!sync.readable()) return false;
  if (strike.slow.count() != 0) {
    // The work takes longer, not the wait, so the extra time begins when the inputs are there.
    trine_error why{};
    const trine_status waited = sync.Await(&why);
    if (waited != TRINE_OK) {
      *status = WaitFailed(sync, waited, why, err);
      return true;
    }
    std::this_thread::sleep_for(strike.slow);
  }
  return Struck(device, strike, sync, err, status);
}

bool IsDecode(const FaultyPlan& plan, const trine_run_args& args) {
  return plan.tokens_param < args.n_params && plan.sequences_param < args.n_params &&
         args.params != nullptr && args.params[plan.tokens_param] > 0 &&
         args.params[plan.tokens_param] == args.params[plan.sequences_param];
}

// Runs the plan and spoils its outputs before the signals are reached.
trine_status RunAndSpoil(const FaultyPlan& plan, const trine_run_args& given, const Sync& sync,
                         const Fault& fault, trine_error* err) {
  const trine_plugin& real = plan.device->real();
  trine_error why{};
  trine_status status = sync.Await(&why);
  if (status != TRINE_OK) return WaitFailed(sync, status, why, err);
  trine_run_args args = given;
  args.sync = {};
  status = real.plan_run(plan.handle, &args, err);
  if (status == TRINE_OK) status = plan.outputs.Spoil(real, args, fault.junk, fault.seed, err);
  if (status == TRINE_OK) sync.Settle(TRINE_OK, "");
  return status;
}

}  // namespace

trine_status PlanRun(trine_plan* handle, const trine_run_args* given, trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    FaultyPlan& plan = *Of(handle);
    FaultyDevice& device = *plan.device;
    if (const trine_status s = CheckLost(device, err); s != TRINE_OK) return s;
    trine_run_args args = sdk::ReadIn(given);
    args.struct_size = std::min<uint32_t>(given->struct_size, sizeof(args));
    Sync sync(device.real(), args.sync);
    const Strike strike = device.faults->Count(Moment::kRun, IsDecode(plan, args));
    trine_status status = TRINE_OK;
    if (MeetSubmission(device, strike, sync, err, &status)) return status;
    if (strike.fault != nullptr && sync.readable()) {
      return RunAndSpoil(plan, args, sync, *strike.fault, err);
    }
    return HandOn(device, &sync, err, [&](const trine_sync& real_sync) {
      args.sync = real_sync;
      return device.real().plan_run(plan.handle, &args, err);
    });
  });
}

trine_status CopyRun(trine_device* handle, const trine_copy_args* given, trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    FaultyDevice& device = *Of(handle);
    if (const trine_status s = CheckLost(device, err); s != TRINE_OK) return s;
    trine_copy_args args = sdk::ReadIn(given);
    args.struct_size = std::min<uint32_t>(given->struct_size, sizeof(args));
    Sync sync(device.real(), args.sync);
    const FaultyDevice* lost_peer = nullptr;
    const auto patch = [&](trine_copy* copy) {
      for (trine_copy_end* end : {&copy->src, &copy->dst}) {
        if (end->buffer == nullptr) continue;
        const FaultyDevice* owner = Of(end->buffer)->device;
        if (owner != &device && owner->lost.load()) lost_peer = owner;
        end->buffer = RealOf(end->buffer);
      }
    };
    const Translated<trine_copy> copies(args.copies, args.n_copies, args.copy_stride, patch);
    args.copies = copies.get();
    const Strike strike = device.faults->Count(Moment::kCopy);
    trine_status status = TRINE_OK;
    if (MeetSubmission(device, strike, sync, err, &status)) return status;
    if (lost_peer != nullptr) {
      if (!sync.signals()) return sdk::Fail(err, TRINE_ABORTED, lost_peer->why);
      sync.Settle(TRINE_ABORTED, lost_peer->why.c_str());
      return TRINE_OK;
    }
    return HandOn(device, &sync, err, [&](const trine_sync& real_sync) {
      args.sync = real_sync;
      return device.real().copy_run(device.handle, &args, err);
    });
  });
}

}  // namespace trine::fault
