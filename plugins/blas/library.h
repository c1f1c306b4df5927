// The calls that are not part of CBLAS and differ between libraries: OpenBLAS, BLIS, or another
// one.
#pragma once

#include <string>

namespace blas {

// Makes the library compute on the threads that call it. The host has a team of threads already,
// and two teams on one processor would take turns. Applies to the calling thread, or to the whole
// process, as the library has it: so every worker calls it once.
void UseCallingThreadOnly();

// Returns the library's name and version, with what it says of its build.
std::string LibraryVersion();

// Returns the processor that the library has chosen kernels for, or "" if it does not tell.
std::string LibraryProcessor();

}  // namespace blas
