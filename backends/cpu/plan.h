// Plans on the CPU: a checked graph bound to memory, run synchronously by the host's thread team in
// one parallel region, with barriers where its ops depend on each other.
#ifndef TRINE_BACKENDS_CPU_PLAN_H_
#define TRINE_BACKENDS_CPU_PLAN_H_

#include "backends/cpu/device.h"

namespace trine::cpu {

trine_status OpQuery(trine_device* device, const trine_graph* graph, uint32_t op,
                     const int64_t* params, trine_op_support* out, trine_error* err);
trine_status PlanQuery(trine_device* device, const trine_graph* graph, trine_plan_info* out,
                       trine_error* err);
trine_status PlanCreate(trine_device* device, const trine_plan_desc* desc, trine_plan** out,
                        trine_error* err);
trine_status PlanRun(trine_plan* plan, const trine_run_args* args, trine_error* err);
void PlanDestroy(trine_plan* plan);

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_PLAN_H_
