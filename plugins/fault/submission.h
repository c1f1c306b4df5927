// Submissions through the wrapper: plan_run and copy_run.
#ifndef TRINE_PLUGINS_FAULT_SUBMISSION_H_
#define TRINE_PLUGINS_FAULT_SUBMISSION_H_

#include "trine/backend.h"

namespace trine::fault {

trine_status PlanRun(trine_plan* plan, const trine_run_args* args, trine_error* err);
trine_status CopyRun(trine_device* device, const trine_copy_args* args, trine_error* err);

}  // namespace trine::fault

#endif  // TRINE_PLUGINS_FAULT_SUBMISSION_H_
