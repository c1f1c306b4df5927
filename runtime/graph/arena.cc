#include "runtime/graph/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace trine {
namespace {

constexpr uint64_t kPage = 4096, kLine = 64;

uint64_t RoundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

}  // namespace

Arena::~Arena() {
  for (const Chunk& chunk : chunks_) munmap(chunk.memory, chunk.bytes);
}

uint64_t Arena::top() const {
  return blocks_.empty() ? 0 : RoundUp(blocks_.back().offset + blocks_.back().bytes, kLine);
}

uint64_t Arena::bytes() const {
  return chunks_.empty() ? 0 : chunks_.back().begin + chunks_.back().bytes;
}

const Arena::Chunk* Arena::Find(uint64_t offset) const {
  const auto behind =
      std::upper_bound(chunks_.begin(), chunks_.end(), offset,
                       [](uint64_t at, const Chunk& chunk) { return at < chunk.begin; });
  return behind == chunks_.begin() ? nullptr : &*(behind - 1);
}

absl::StatusOr<uint64_t> Arena::FindRoom(uint64_t bytes) {
  const uint64_t from = top();
  size_t first_free = 0;  // index of a chunk
  for (const Chunk& chunk : chunks_) {
    const uint64_t begin = std::max(from, chunk.begin);
    const uint64_t end = chunk.begin + chunk.bytes;
    if (begin < end && end - begin >= bytes) return begin;
    if (chunk.begin < from) ++first_free;
  }
  // The chunks after the last block are unused and too small: a larger one replaces them.
  const uint64_t begin = first_free < chunks_.size() ? chunks_[first_free].begin : this->bytes();
  const uint64_t size = RoundUp(std::max(bytes, chunk_bytes_), kPage);
  chunks_.reserve(chunks_.size() + 1);  // fails here, if at all, where nothing is lost
  void* memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no memory for ", size, " bytes of captured values"));
  }
  for (size_t i = first_free; i < chunks_.size(); ++i) munmap(chunks_[i].memory, chunks_[i].bytes);
  chunks_.resize(first_free);
  chunks_.push_back({begin, size, static_cast<std::byte*>(memory)});
  return begin;
}

absl::StatusOr<Handle> Arena::Advance(uint64_t bytes) {
  const auto begin = FindRoom(bytes);
  if (!begin.ok()) return begin.status();
  blocks_.push_back({*begin, bytes});
  return blocks_.back();
}

void Arena::Regress(size_t time) {
  if (time < blocks_.size()) blocks_.resize(time);
}

std::byte* Arena::At(const Handle& handle) const {
  const Chunk* chunk = Find(handle.offset);
  return chunk->memory + (handle.offset - chunk->begin);
}

void Arena::Poison(const Handle& handle) const {
  if (handle.bytes > 0) std::memset(At(handle), static_cast<int>(kPoison), handle.bytes);
}

}  // namespace trine
