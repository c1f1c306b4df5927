// Keeps packed weights in a file between runs (docs/packing.md). A cache is verified and used in
// place; it is written after packing.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "plugins/host_services.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/weights/load_progress.h"
#include "runtime/model/weights/packed_weights.h"

namespace trine {

// Returns the path of a model's cache: beside its (first) file, or in `folder`. With fast numerics
// devices may choose other layouts, which have a file of their own.
std::string PackCachePath(const gguf::File& file, const std::string& folder, bool exact);

// Lets all weights use the cache at `path`, after comparing every byte of them with its checksum.
// Returns NOT_FOUND if there is no file. Any other error says why the cache can't be used; some
// weights may then have their place in the cache already, so all must be added again.
absl::Status LoadPackCache(const std::string& path, const gguf::File& file,
                           const HostServices& host, LoadMeter* meter, PackedWeights* weights);

// Returns whether an error of LoadPackCache is about the contents of the file, so that a new file
// would help. After other errors (no permission, no memory, a device that fails) the file may be
// intact.
bool IsFaultOfCache(const absl::Status& status);

// Writes the weights, whose hashes must be known. The file gets its name only when it is complete.
absl::Status WritePackCache(const std::string& path, const gguf::File& file,
                            const PackedWeights& weights, LoadMeter* meter);

}  // namespace trine
