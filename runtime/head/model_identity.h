// Which model a head belongs to. Pure functions; any thread.
#ifndef TRINE_RUNTIME_HEAD_MODEL_IDENTITY_H_
#define TRINE_RUNTIME_HEAD_MODEL_IDENTITY_H_

#include <cstdint>
#include <string>

#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model_config.h"

namespace trine {

struct ModelIdentity {
  std::string architecture;
  int64_t n_embd = 0;
  int64_t n_vocab = 0;
  uint64_t hash = 0;

  bool operator==(const ModelIdentity&) const = default;
};

// Of the metadata, of the tensors' names, types and shapes, and of some bytes of each (ModelId):
// not of all, so that it takes no longer with a large model. The keys that say how a file is split
// do not count.
uint64_t HashModel(const gguf::File& file);

ModelIdentity IdentityOf(const gguf::File& file, const ModelConfig& config);

}  // namespace trine

#endif  // TRINE_RUNTIME_HEAD_MODEL_IDENTITY_H_
