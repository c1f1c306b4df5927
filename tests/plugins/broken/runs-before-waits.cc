// Runs at once, and holds back only its signals until its waits are reached.
#include "tests/plugins/sound_backend.h"

static trine_status Settle(const trine_sync& sync, trine_error* err) {
  return trine::sdk::SubmitSynchronously(sync, sound::TimelineOf, err,
                                         [](trine_error*) { return trine_status{TRINE_OK}; });
}
static trine_status PlanRun(trine_plan* plan, const trine_run_args* in, trine_error* err) {
  trine_run_args args = trine::sdk::ReadIn(in);
  const trine_sync sync = args.sync;
  args.struct_size = sizeof(args);
  args.sync = {};
  const trine_status status = sound::PlanRun(plan, &args, err);
  return status == TRINE_OK ? Settle(sync, err) : status;
}
static trine_status CopyRun(trine_device* device, const trine_copy_args* in, trine_error* err) {
  trine_copy_args args = trine::sdk::ReadIn(in);
  const trine_sync sync = args.sync;
  args.struct_size = sizeof(args);
  args.sync = {};
  const trine_status status = sound::CopyRun(device, &args, err);
  return status == TRINE_OK ? Settle(sync, err) : status;
}
static void Change(trine_plugin& t) {
  t.plan_run = PlanRun;
  t.copy_run = CopyRun;
}
TRINE_FIXTURE(Change)
