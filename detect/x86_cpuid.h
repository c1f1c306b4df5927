// The running x86 processor as a CpuidSource.

#ifndef TRINE_DETECT_X86_CPUID_H_
#define TRINE_DETECT_X86_CPUID_H_

#include <memory>

#include "detect/x86_features.h"

namespace trine::detect {

// Null when this program was not built for x86-64. Each object belongs to its caller. CPUID is
// executed on whichever core the thread is on; hybrid processors agree on everything we ask.
std::unique_ptr<CpuidSource> HostCpuid();

}  // namespace trine::detect

#endif  // TRINE_DETECT_X86_CPUID_H_
