// The format of a pack cache: a head with a table of tensors, then their packed bytes.
//
//   8 bytes    "TRINEPCK"
//   u32        version, 2
//   u32        0x01020304, which another byte order reads as another number
//   u64        bytes of the head: all before the data, without padding
//   u64        bytes of the file
//   u64        Hash64 of the rest of the head; its seed is the Hash64 (seed 0) of the fields above
//   u32, u32   number of model files, number of tensors
//   each model file: u64 bytes, modified_ns, changed_ns, device, inode
//   each tensor: string device, string name (u32 length and bytes), then u64 layout, type, four
//              dims, source_bytes, source_hash, group_rows, group_bytes, groups, packed_bytes,
//              offset, checksum
//
// Numbers are little-endian. The data of each tensor begins at a multiple of 4096, in the table's
// order, without overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/file_memory.h"

namespace trine {

inline constexpr uint64_t kPackAlignment = 4096;

struct PackEntry {
  std::string device;  // the owner of the layout: plugin, version and architecture
  std::string name;    // the tensor's name in the model
  uint64_t layout = 0;
  uint64_t type = 0;                // the tensor's quant::Type in the model
  uint64_t dims[4] = {0, 0, 0, 0};  // innermost first
  uint64_t source_bytes = 0;        // the tensor's size in the model
  uint64_t source_hash = 0;         // HashRows of the tensor in the model
  uint64_t group_rows = 0;
  uint64_t group_bytes = 0;
  uint64_t groups = 0;
  uint64_t packed_bytes = 0;
  uint64_t offset = 0;    // counted from the beginning of the file
  uint64_t checksum = 0;  // HashRows of the groups

  bool operator==(const PackEntry&) const = default;
};

struct PackTable {
  std::vector<gguf::FileStamp> model;  // the model's files when the cache was written
  std::vector<PackEntry> entries;
};

// Sets every entry's offset. Returns the bytes of the whole file.
uint64_t PlacePackEntries(PackTable* table);
// Returns the head as it is in the file. The entries must have their offsets.
std::vector<std::byte> EncodePackHead(const PackTable& table);
// Reads the head. Checks every number against the file's size and returns INVALID_ARGUMENT, saying
// what is wrong, if one is impossible. The caller must check the data against the checksums.
absl::StatusOr<PackTable> ParsePackHead(const std::byte* data, uint64_t bytes);

}  // namespace trine
