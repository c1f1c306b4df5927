// The self-test that a device runs when it is opened: a few cases of every kernel but moe_matmul
// and attention in pieces. It takes a few milliseconds, and finds a processor, an emulator or a
// compiler that breaks the contract. check.h has the thorough comparison.

#pragma once

#include <string>

#include "kernels/cpu/levels/kernel_table.h"

namespace trine::cpu_kernels {

// Runs the self-test. Returns "" if every bit was equal, else the name of the first operation that
// differed.
std::string RunSelfTest(const KernelTable& table);

}  // namespace trine::cpu_kernels
