// Plans on the device: a checked graph bound to memory, captured for the parameters of a run and
// replayed as long as they stay the same.
#ifndef TRINE_BACKENDS_HIP_PLAN_H_
#define TRINE_BACKENDS_HIP_PLAN_H_

#include "trine/backend.h"

namespace trine::hip {

trine_status OpQuery(trine_device* device, const trine_graph* graph, uint32_t op,
                     const int64_t* params, trine_op_support* out, trine_error* err);
trine_status PlanQuery(trine_device* device, const trine_graph* graph, trine_plan_info* out,
                       trine_error* err);
trine_status PlanCreate(trine_device* device, const trine_plan_desc* desc, trine_plan** out,
                        trine_error* err);
trine_status PlanRun(trine_plan* plan, const trine_run_args* args, trine_error* err);
void PlanDestroy(trine_plan* plan);

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_PLAN_H_
