// What a device runs when it is opened: a few cases of every kernel against the reference. It takes
// a few milliseconds and finds a processor, an emulator or a compiler that breaks the contract; the
// thorough comparison is check.h's.

#ifndef TRINE_KERNELS_CPU_SELF_TEST_H_
#define TRINE_KERNELS_CPU_SELF_TEST_H_

#include <string>

#include "kernels/cpu/kernel_table.h"

namespace trine::cpu_kernels {

// "" when every bit was equal, else the name of the first operation that differed.
std::string RunSelfTest(const KernelTable& table);

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_SELF_TEST_H_
