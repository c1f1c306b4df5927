#include "runtime/kv_store/kv_file.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "runtime/base/invalid.h"
#include "runtime/gguf/cursor.h"
#include "runtime/pack_cache/hash64.h"

namespace trine {
namespace {

constexpr std::string_view kMagic = "TRINEKVB";
constexpr uint32_t kVersion = 1;
constexpr uint32_t kByteOrder = 0x01020304;
constexpr uint64_t kHashAt = 32;       // offset of the head's own hash
constexpr uint64_t kFixedBytes = 208;  // bytes of the head before the tokens
constexpr uint32_t kMaxTokens = 1 << 12;

static_assert(kKvFileMostHeadBytes >= kFixedBytes + 4 * kMaxTokens);

uint64_t HeadHash(const std::byte* head, uint64_t bytes) {
  constexpr uint64_t kBehind = kHashAt + sizeof(uint64_t);
  return Hash64(head + kBehind, bytes - kBehind, Hash64(head, kHashAt, 0));
}

bool ReadHash(gguf::Cursor* cursor, Hash256* hash) {
  std::string_view bytes;
  if (!cursor->ReadBytes(hash->bytes.size(), &bytes)) return false;
  std::memcpy(hash->bytes.data(), bytes.data(), bytes.size());
  return true;
}

// Checks the fields before the head's hash, then the hash. OK: `data` holds the whole head.
absl::Status CheckBeginning(std::span<const std::byte> data, uint64_t file_bytes,
                            uint64_t* head_bytes) {
  gguf::Cursor cursor(data.data(), data.size());
  uint32_t version = 0, order = 0;
  uint64_t said_bytes = 0, hash = 0;
  if (!cursor.Skip(kMagic.size()) || std::memcmp(data.data(), kMagic.data(), kMagic.size()) != 0) {
    return Invalid("is no KV block");
  }
  if (!cursor.Read(&version) || !cursor.Read(&order) || !cursor.Read(head_bytes) ||
      !cursor.Read(&said_bytes) || !cursor.Read(&hash)) {
    return cursor.Ends("the head");
  }
  if (version != kVersion) return Invalid("is of version ", version, ", not ", kVersion);
  if (order != kByteOrder) return Invalid("has another byte order");
  if (said_bytes != file_bytes) return Invalid("has ", file_bytes, " bytes, and says ", said_bytes);
  if (*head_bytes < kFixedBytes || *head_bytes > data.size()) {
    return Invalid("has a head of ", *head_bytes, " bytes in a file of ", file_bytes);
  }
  if (HeadHash(data.data(), *head_bytes) != hash) return Invalid("has a damaged head");
  return absl::OkStatus();
}

}  // namespace

uint64_t KvFileHeadBytes(size_t tokens) { return kFixedBytes + tokens * sizeof(int32_t); }

std::vector<std::byte> EncodeKvFileHead(const KvBlock& block, const KvPayload& payload) {
  const KvSpace& space = *block.space;
  const uint64_t head_bytes = KvFileHeadBytes(block.tokens.size());
  gguf::ByteWriter w;
  w.bytes.reserve(head_bytes);
  w.Bytes(kMagic.data(), kMagic.size());
  w.Number(kVersion).Number(kByteOrder).Number(head_bytes).Number(head_bytes + payload.size);
  w.Number(uint64_t{0});  // the head's hash, set below
  w.Number(Hash64(payload.data.get(), payload.size, 0)).Number(space.block_bytes());
  w.Number(block.first_position).Number(space.numerics_version());
  w.Number(static_cast<uint32_t>(payload.form));
  for (const Hash256* hash : {&space.model(), &space.id(), &block.parent, &block.key}) {
    w.Bytes(hash->bytes.data(), hash->bytes.size());
  }
  w.Number(static_cast<uint32_t>(block.tokens.size())).Number(uint32_t{0});
  w.Bytes(block.tokens.data(), block.tokens.size_bytes());
  const uint64_t hash = HeadHash(w.bytes.data(), w.bytes.size());
  std::memcpy(w.bytes.data() + kHashAt, &hash, sizeof(hash));
  return std::move(w.bytes);
}

absl::StatusOr<KvFileHead> ParseKvFileHead(std::span<const std::byte> data, uint64_t file_bytes) {
  data = data.first(std::min<uint64_t>(data.size(), file_bytes));
  uint64_t head_bytes = 0;
  if (absl::Status s = CheckBeginning(data, file_bytes, &head_bytes); !s.ok()) return s;
  gguf::Cursor cursor(data.data(), head_bytes);
  cursor.Skip(kHashAt + sizeof(uint64_t));
  KvFileHead head;
  uint32_t form = 0, n_tokens = 0, zero = 0;
  bool read = cursor.Read(&head.payload_hash) && cursor.Read(&head.block_bytes) &&
              cursor.Read(&head.first_position) && cursor.Read(&head.numerics_version) &&
              cursor.Read(&form);
  for (Hash256* hash : {&head.model, &head.space, &head.parent, &head.key}) {
    read = read && ReadHash(&cursor, hash);
  }
  if (!read || !cursor.Read(&n_tokens) || !cursor.Read(&zero)) return cursor.Ends("the head");
  if (!IsKvForm(form)) return Invalid("is in the form ", form, ", which is none");
  if (zero != 0) return Invalid("has a number where none should be");
  if (n_tokens == 0 || n_tokens > kMaxTokens || KvFileHeadBytes(n_tokens) != head_bytes) {
    return Invalid("has ", n_tokens, " tokens in a head of ", head_bytes, " bytes");
  }
  head.form = static_cast<KvForm>(form);
  head.payload_bytes = file_bytes - head_bytes;
  if (head.form == KvForm::kRaw ? head.payload_bytes != head.block_bytes
                                : head.payload_bytes > head.block_bytes) {
    return Invalid("has ", head.payload_bytes, " bytes in the form ", KvFormName(head.form),
                   " for a block of ", head.block_bytes);
  }
  head.tokens.resize(n_tokens);
  std::memcpy(head.tokens.data(), data.data() + cursor.position(), n_tokens * sizeof(int32_t));
  if (KvBlockKey(head.space, head.parent, head.first_position, head.tokens) != head.key) {
    return Invalid("has a key that is not its own");
  }
  return head;
}

absl::Status CheckKvFileHead(const KvFileHead& head, const KvBlock& block) {
  const KvSpace& space = *block.space;
  if (head.numerics_version != space.numerics_version()) {
    return Invalid("is of numerics version ", head.numerics_version, ", not ",
                   space.numerics_version());
  }
  if (head.model != space.model()) return Invalid("is of another model");
  if (head.space != space.id() || head.block_bytes != space.block_bytes()) {
    return Invalid("is of another space");
  }
  if (head.key != block.key || head.parent != block.parent ||
      head.first_position != block.first_position) {
    return Invalid("is another block");
  }
  if (!std::equal(head.tokens.begin(), head.tokens.end(), block.tokens.begin(),
                  block.tokens.end())) {
    return Invalid("is of other tokens");
  }
  if (head.form != KvForm::kRaw && head.form != space.form()) {
    return Invalid("is in the form ", KvFormName(head.form), " in a space of ",
                   KvFormName(space.form()));
  }
  return absl::OkStatus();
}

}  // namespace trine
