// Says whether a level has AMX's tiles, or for tests their emulation (emulated_tiles.h). With
// tiles, products of many columns take their activations in records (activation_records.h).

#pragma once

#if defined(__AMX_INT8__) || defined(TRINE_EMULATED_AMX)
#define TRINE_HAS_AMX 1
#else
#define TRINE_HAS_AMX 0
#endif
