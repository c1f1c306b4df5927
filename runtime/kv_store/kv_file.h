// The format of a block's file: a head that says all about the block, then its bytes.
//
//   8 bytes    "TRINEKVB"
//   u32        version, 1
//   u32        0x01020304, which another byte order reads as another number
//   u64        bytes of the head, tokens included
//   u64        bytes of the file
//   u64        Hash64 of what follows in the head, its seed the Hash64 (seed 0) of what is before
//   u64        Hash64 of the block's bytes as they are in the file, seed 0
//   u64        bytes of the block as it is on a device
//   u64        first position
//   u32, u32   numerics version, form (KvForm)
//   4 x 32     model, space, parent, key
//   u32, u32   how many tokens, 0
//   i32 ...    the tokens
//
// Numbers are little-endian. The key is what the space, the parent, the first position and the
// tokens give, and the file's name.
#ifndef TRINE_RUNTIME_KV_STORE_KV_FILE_H_
#define TRINE_RUNTIME_KV_STORE_KV_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/kv_store/kv_form.h"
#include "runtime/kv_store/kv_space.h"

namespace trine {

struct KvFileHead {
  uint64_t payload_bytes = 0;
  uint64_t payload_hash = 0;
  uint64_t block_bytes = 0;
  uint64_t first_position = 0;
  uint32_t numerics_version = 0;
  KvForm form = KvForm::kRaw;
  Hash256 model, space, parent, key;
  std::vector<int32_t> tokens;
};

uint64_t KvFileHeadBytes(size_t tokens);
// More than any head has.
inline constexpr uint64_t kKvFileMostHeadBytes = 256 + 4 * 4096;

std::vector<std::byte> EncodeKvFileHead(const KvBlock& block, const KvPayload& payload);
// `data` is the beginning of a file of `file_bytes`: the head, or more than it. Every number is
// held against the file's size and the others, the key against what it is made of; INVALID_ARGUMENT
// says what is wrong. The payload is for the caller to see.
absl::StatusOr<KvFileHead> ParseKvFileHead(std::span<const std::byte> data, uint64_t file_bytes);
// Whether it is this block's, and can be: INVALID_ARGUMENT says what differs.
absl::Status CheckKvFileHead(const KvFileHead& head, const KvBlock& block);

}  // namespace trine

#endif  // TRINE_RUNTIME_KV_STORE_KV_FILE_H_
