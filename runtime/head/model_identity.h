// Which model a head belongs to. Pure functions; any thread.
#ifndef TRINE_RUNTIME_HEAD_MODEL_IDENTITY_H_
#define TRINE_RUNTIME_HEAD_MODEL_IDENTITY_H_

#include <cstdint>
#include <string>

#include "runtime/gguf/gguf_file.h"

namespace trine {

struct ModelIdentity {
  std::string architecture;
  int64_t n_embd = 0;
  int64_t n_vocab = 0;
  uint64_t hash = 0;

  bool operator==(const ModelIdentity&) const = default;
};

// Of the metadata and of the tensors' names, types and shapes, but not of their values: two trained
// from one another under one name are alike. The keys that say how a file is split do not count.
uint64_t HashMetadata(const gguf::File& file);

}  // namespace trine

#endif  // TRINE_RUNTIME_HEAD_MODEL_IDENTITY_H_
