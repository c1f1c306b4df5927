// What a model is, whatever its files are called and wherever they lie: SHA-256 over its metadata
// (but for what says how it is split into files), and name, type, dimensions and bytes of every
// tensor. Two models of one hash are the same for all that is known: it holds against malice, too.
// The order of tensors in the files does not count, nor their version of the format.
//
// All of the file is read: at 1 to 2 GB/s for each thread where the processor has instructions for
// it, a quarter of that elsewhere. Bytes are hashed in pieces of a MiB, whose hashes are hashed.
#ifndef TRINE_RUNTIME_KV_STORE_MODEL_HASH_H_
#define TRINE_RUNTIME_KV_STORE_MODEL_HASH_H_

#include "runtime/gguf/gguf_file.h"
#include "runtime/kv_store/hash256.h"
#include "runtime/kv_store/kv_folder.h"

namespace trine {

// `threads` at once, the calling one among them.
Hash256 HashModel(const gguf::File& file, int threads);

// The same, remembered in `folder` by the stamps of the model's files (gguf::FileStamp). Not where
// they have changed within the last seconds, or were never files. What is in the folder is as much
// to be trusted as the blocks in it.
Hash256 HashModelOnce(const gguf::File& file, int threads, const KvFolder& folder);

}  // namespace trine

#endif  // TRINE_RUNTIME_KV_STORE_MODEL_HASH_H_
