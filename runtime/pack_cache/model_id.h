// What tells models apart. Pure; any thread.
#ifndef TRINE_RUNTIME_PACK_CACHE_MODEL_ID_H_
#define TRINE_RUNTIME_PACK_CACHE_MODEL_ID_H_

#include <cstdint>

#include "runtime/gguf/gguf_file.h"

namespace trine {

// Of the table of tensors, and of some bytes of each: of a mapped file a few pages are read for
// every tensor, however large it is. The same however the file is split. Two models whose weights
// were made by training one from the other have other bytes there.
uint64_t ModelId(const gguf::File& file);

}  // namespace trine

#endif  // TRINE_RUNTIME_PACK_CACHE_MODEL_ID_H_
