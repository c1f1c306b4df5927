// The format of a pack cache: a head with a table of tensors, then their packed bytes.
//
//   8 bytes    "TRINEPCK"
//   u32        version, 2
//   u32        0x01020304, which another byte order reads as another number
//   u64        bytes of the head: all before the data, without what fills it up
//   u64        bytes of the file
//   u64        Hash64 of what follows in the head, its seed the Hash64 (seed 0) of what is before
//   u32, u32   how many model files, how many tensors
//   each model file: u64 bytes, modified_ns, changed_ns, device, inode
//   each tensor: string device, string name (u32 length and bytes), then u64 layout, type, four
//              dims, source_bytes, source_hash, group_rows, group_bytes, groups, packed_bytes,
//              offset, checksum
//
// Numbers are little-endian. Data begins at a multiple of 4096 for each tensor, in the table's
// order, without overlap.
#ifndef TRINE_RUNTIME_PACK_CACHE_PACK_FILE_H_
#define TRINE_RUNTIME_PACK_CACHE_PACK_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/file_stamp.h"

namespace trine {

inline constexpr uint64_t kPackAlignment = 4096;

struct PackEntry {
  std::string device;  // whose layout it is: plugin, version and architecture
  std::string name;    // of the tensor in the model
  uint64_t layout = 0;
  uint64_t type = 0;                // of the plain tensor: quant::Type
  uint64_t dims[4] = {0, 0, 0, 0};  // innermost first
  uint64_t source_bytes = 0;
  uint64_t source_hash = 0;  // HashRows of the plain tensor
  uint64_t group_rows = 0;
  uint64_t group_bytes = 0;
  uint64_t groups = 0;
  uint64_t packed_bytes = 0;
  uint64_t offset = 0;    // from the beginning of the file
  uint64_t checksum = 0;  // HashRows of the groups

  bool operator==(const PackEntry&) const = default;
};

struct PackTable {
  std::vector<gguf::FileStamp> model;  // of the model's files when the cache was written
  std::vector<PackEntry> entries;
};

// Gives every entry its offset; returns the bytes of the whole file.
uint64_t PlacePackEntries(PackTable* table);
// The head as it is in the file. The entries have their offsets.
std::vector<std::byte> EncodePackHead(const PackTable& table);
// Every number is held against the file's size; INVALID_ARGUMENT says what is wrong. Looks at the
// head alone: what the checksums say of the data is for the caller to see.
absl::StatusOr<PackTable> ParsePackHead(const std::byte* data, uint64_t bytes);

}  // namespace trine

#endif  // TRINE_RUNTIME_PACK_CACHE_PACK_FILE_H_
