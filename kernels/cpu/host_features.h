// What this processor and its operating system let a program use, by the names of detect/, and its
// caches. For the programs of this folder, which stand alone; a backend asks detect/.

#ifndef TRINE_KERNELS_CPU_HOST_FEATURES_H_
#define TRINE_KERNELS_CPU_HOST_FEATURES_H_

#include "kernels/cpu/tuning.h"

namespace trine::cpu_kernels {

// False for a name that is not known. Asking for AMX asks the system to grant it to this
// process.
bool HostHas(const char* feature);

// Of the first processor; a guess where the system does not say.
Caches HostCaches();

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_HOST_FEATURES_H_
