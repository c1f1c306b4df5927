// Whether this processor and its operating system let a program use a feature, by the names of
// detect/. For the programs of this folder, which stand alone; a backend asks detect/.

#ifndef TRINE_KERNELS_CPU_HOST_FEATURES_H_
#define TRINE_KERNELS_CPU_HOST_FEATURES_H_

namespace trine::cpu_kernels {

// False for a name that is not known. Asking for AMX asks the system to grant it to this
// process.
bool HostHas(const char* feature);

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_HOST_FEATURES_H_
