// Packed weights kept in a file between runs (docs/packing.md): found again, verified and used in
// place, or written when they have been packed.
#ifndef TRINE_RUNTIME_MODEL_PACK_CACHE_H_
#define TRINE_RUNTIME_MODEL_PACK_CACHE_H_

#include <string>

#include "absl/status/status.h"
#include "plugins/host_services.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/load_progress.h"
#include "runtime/model/packed_weights.h"

namespace trine {

// Where the cache of a model is: beside its (first) file, or in `folder`.
std::string PackCachePath(const gguf::File& file, const std::string& folder);

// Places all weights in the cache at `path`, after every byte of them has been held against its
// checksum. NOT_FOUND where there is no file; any other error says why what is there can't serve.
// Weights that were placed then have to be added anew.
absl::Status LoadPackCache(const std::string& path, const gguf::File& file,
                           const HostServices& host, LoadMeter* meter, PackedWeights* weights);

// Whether an error of LoadPackCache is about what the file holds: a new one would serve. Otherwise
// (no permission, no memory, a device that fails) it may be as good as ever.
bool IsFaultOfCache(const absl::Status& status);

// Writes the weights, whose hashes are known. The file has its name only when it is complete.
absl::Status WritePackCache(const std::string& path, const gguf::File& file,
                            const PackedWeights& weights, LoadMeter* meter);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_PACK_CACHE_H_
