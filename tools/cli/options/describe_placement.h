// Says in one line where a model was placed.
#pragma once

#include <string>

#include "runtime/engine/engine.h"

namespace trine {

// Returns a text such as "CPU(4L) + dGPU(28L)", or one that names the devices that share rows.
std::string DescribePlacement(const Engine& engine, const EngineOptions& options);

}  // namespace trine
