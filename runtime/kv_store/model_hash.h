// Identifies a model by a SHA-256 over its metadata and over the name, type, dimensions and bytes
// of every tensor. Models with equal hashes are equal, even if someone tries to forge a model. The
// hash does not depend on the files' names and places, on how the model is split into files, on the
// order of tensors, or on the version of the file format.
//
// Hashing reads the whole file: 1 to 2 GB/s per thread if the processor has instructions for
// SHA-256, a quarter of that otherwise. Each MiB is hashed by itself, and the hashes are hashed.
#pragma once

#include "runtime/gguf/gguf_file.h"
#include "runtime/kv_store/hash256.h"
#include "runtime/kv_store/kv_folder.h"

namespace trine {

// Hashes a model with `threads` threads, the calling thread included.
Hash256 HashModel(const gguf::File& file, int threads);

// Returns HashModel's hash and keeps it in `folder`, so that the model is hashed only once. The
// stamps of the model's files (gguf::FileStamp) identify the hash. Does not keep it if a file
// changed within the last seconds, or if the model was not read from files. A hash from the folder
// is as trustworthy as the blocks in the folder.
Hash256 HashModelOnce(const gguf::File& file, int threads, const KvFolder& folder);

}  // namespace trine
