// Reads any bytes as a pack cache. They are refused with a message, or read with all data within
// the bytes, and are the same after being written and read again. The head's hash is also
// corrected, to reach the code behind its check.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/pack_cache/hash64.h"
#include "runtime/pack_cache/pack_file.h"

namespace trine {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void Read(const std::vector<std::byte>& file) {
  const absl::StatusOr<PackTable> table = ParsePackHead(file.data(), file.size());
  if (!table.ok()) return Require(!table.status().message().empty());
  volatile uint64_t sum = 0;  // makes sure that the bytes are read
  for (const PackEntry& e : table->entries) {
    Require(e.offset <= file.size() && e.packed_bytes <= file.size() - e.offset);
    Require(e.groups * e.group_bytes <= e.packed_bytes);
    sum = sum + HashRows(file.data() + e.offset, e.group_bytes, 0, e.groups);
  }
  PackTable again = *table;
  std::vector<std::byte> written(PlacePackEntries(&again));
  const std::vector<std::byte> head = EncodePackHead(again);
  Require(head.size() <= written.size());
  std::memcpy(written.data(), head.data(), head.size());
  const absl::StatusOr<PackTable> reread = ParsePackHead(written.data(), written.size());
  Require(reread.ok() && reread->model == again.model && reread->entries == again.entries);
}

}  // namespace
}  // namespace trine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> file(size);
  if (size != 0) std::memcpy(file.data(), data, size);
  trine::Read(file);
  if (size < 48) return 0;
  const uint64_t bytes = size;
  std::memcpy(file.data() + 24, &bytes, 8);
  uint64_t head_bytes = 0;
  std::memcpy(&head_bytes, file.data() + 16, 8);
  if (head_bytes < 48 || head_bytes > size) return 0;
  const uint64_t before = trine::Hash64(file.data(), 32, 0);
  const uint64_t hash = trine::Hash64(file.data() + 40, head_bytes - 40, before);
  std::memcpy(file.data() + 32, &hash, 8);
  trine::Read(file);
  return 0;
}
