// The format of a block's file: a head that describes the block, then the payload.
//
//   8 bytes    "TRINEKVB"
//   u32        version, 1
//   u32        0x01020304, which another byte order reads as another number
//   u64        bytes of the head, tokens included
//   u64        bytes of the file
//   u64        Hash64 of the rest of the head; its seed is the Hash64 (seed 0) of the fields above
//   u64        Hash64 of the payload, seed 0
//   u64        bytes of the block as it is on a device
//   u64        first position
//   u32, u32   numerics version, form (KvForm)
//   4 x 32     model, space, parent, key
//   u32, u32   number of tokens, 0
//   i32 ...    the tokens
//
// Numbers are little-endian. The file's name is the key, which is computed from space, parent,
// first position and tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
// An upper bound on the bytes of a head.
inline constexpr uint64_t kKvFileMostHeadBytes = 256 + 4 * 4096;

std::vector<std::byte> EncodeKvFileHead(const KvBlock& block, const KvPayload& payload);
// Parses the head of a file of `file_bytes`. `data` is the beginning of the file and may be longer
// than the head. Checks every number against the file's size and against other numbers, and the key
// against the values that it is computed from. Returns INVALID_ARGUMENT, saying what is wrong, if a
// check fails. The caller must check the payload.
absl::StatusOr<KvFileHead> ParseKvFileHead(std::span<const std::byte> data, uint64_t file_bytes);
// Returns INVALID_ARGUMENT, saying what differs, if `head` does not belong to `block`.
absl::Status CheckKvFileHead(const KvFileHead& head, const KvBlock& block);

}  // namespace trine
