// Whether a level has AMX's tiles, or for tests their emulation (emulated_tiles.h). With them,
// products of many columns take their activations in records (activation_records.h).

#ifndef TRINE_KERNELS_CPU_AMX_H_
#define TRINE_KERNELS_CPU_AMX_H_

#if defined(__AMX_INT8__) || defined(TRINE_EMULATED_AMX)
#define TRINE_HAS_AMX 1
#else
#define TRINE_HAS_AMX 0
#endif

#endif  // TRINE_KERNELS_CPU_AMX_H_
