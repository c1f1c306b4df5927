// Finds the features and caches that this processor and its operating system offer. Features have
// the names of detect/. For the stand-alone programs of kernels/cpu; a backend asks detect/.

#pragma once

#include "kernels/cpu/levels/kernel_table.h"

namespace trine::cpu_kernels {

// Returns whether `feature` may be used; false for an unknown name. For AMX, requests its tiles
// from the operating system for this process.
bool HostHas(const char* feature);

// Returns the caches of the first processor. Guesses the sizes that the system does not tell.
Caches HostCaches();

}  // namespace trine::cpu_kernels
