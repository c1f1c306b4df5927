// Reads any bytes as a file of a KV block. They are refused with a message, or read with all
// numbers within the file. The head's hash and the key are also corrected, to get past their
// checks.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/kv_store/kv_file.h"
#include "runtime/kv_store/kv_space.h"
#include "runtime/pack_cache/hash64.h"

namespace trine {
namespace {

constexpr size_t kSizesAt = 16, kHashAt = 32, kPositionAt = 56;
constexpr size_t kSpaceAt = 104, kParentAt = 136, kKeyAt = 168, kTokensAt = 208;

void Require(bool holds) {
  if (!holds) std::abort();
}

void Read(const std::vector<std::byte>& file) {
  // Read all of it, and as much as a store reads of a long file.
  for (const size_t seen : {file.size(), std::min<size_t>(file.size(), kKvFileMostHeadBytes)}) {
    const auto head = ParseKvFileHead(std::span(file).first(seen), file.size());
    if (!head.ok()) {
      Require(!head.status().message().empty());
      continue;
    }
    Require(KvFileHeadBytes(head->tokens.size()) + head->payload_bytes == file.size());
    Require(KvBlockKey(head->space, head->parent, head->first_position, head->tokens) == head->key);
  }
}

Hash256 HashAt(const std::vector<std::byte>& file, size_t at) {
  Hash256 hash;
  std::memcpy(hash.bytes.data(), file.data() + at, hash.bytes.size());
  return hash;
}

// Corrects sizes, key and hash, as the writer would have written them.
void Mend(std::vector<std::byte>* file) {
  const uint64_t size = file->size();
  uint64_t head_bytes = 0, position = 0;
  std::memcpy(&head_bytes, file->data() + kSizesAt, 8);
  std::memcpy(file->data() + kSizesAt + 8, &size, 8);
  if (head_bytes < kTokensAt || head_bytes > size) return;
  std::memcpy(&position, file->data() + kPositionAt, 8);
  std::vector<int32_t> tokens((head_bytes - kTokensAt) / 4);
  std::memcpy(tokens.data(), file->data() + kTokensAt, tokens.size() * 4);
  const Hash256 key =
      KvBlockKey(HashAt(*file, kSpaceAt), HashAt(*file, kParentAt), position, tokens);
  std::memcpy(file->data() + kKeyAt, key.bytes.data(), key.bytes.size());
  const uint64_t before = Hash64(file->data(), kHashAt, 0);
  const uint64_t hash = Hash64(file->data() + kHashAt + 8, head_bytes - kHashAt - 8, before);
  std::memcpy(file->data() + kHashAt, &hash, 8);
}

}  // namespace
}  // namespace trine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> file(size);
  if (size != 0) std::memcpy(file.data(), data, size);
  trine::Read(file);
  if (size < trine::kTokensAt) return 0;
  trine::Mend(&file);
  trine::Read(file);
  return 0;
}
