// Code that most backend plugins in C++17 or later would write themselves: statuses, guarded entry
// points, checked graphs, tensor views, host memory, timelines, decoders of weights. Header-only;
// needs the standard library and mmap. Optional: the ABI is trine/backend.h alone.
#ifndef TRINE_BACKEND_SDK_H_
#define TRINE_BACKEND_SDK_H_

#include "trine/sdk/dequantize.h"
#include "trine/sdk/dtype.h"
#include "trine/sdk/graph.h"
#include "trine/sdk/host_memory.h"
#include "trine/sdk/layout.h"
#include "trine/sdk/memory_use.h"
#include "trine/sdk/op_names.h"
#include "trine/sdk/op_rules.h"
#include "trine/sdk/op_times.h"
#include "trine/sdk/plan.h"
#include "trine/sdk/status.h"
#include "trine/sdk/support.h"
#include "trine/sdk/timeline.h"

#endif  // TRINE_BACKEND_SDK_H_
