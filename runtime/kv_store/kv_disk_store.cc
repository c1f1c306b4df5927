#include "runtime/kv_store/kv_disk_store.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "runtime/pack_cache/hash64.h"

namespace trine {
namespace {

constexpr auto kBlock = KvFolder::Kind::kBlock;
constexpr uint64_t kScansPerStore = 16;
constexpr uint64_t kLeastBlocksPerScan = 64;
constexpr size_t kMostTouched = 1 << 16;  // entries in touched_

StoreItem ItemOf(const KvBlock& block, uint64_t file_bytes) {
  return {block.key, block.parent, block.first_position, block.space->block_bytes(), file_bytes};
}

absl::Status Named(const Hash256& key, const absl::Status& why) {
  return absl::Status(why.code(), absl::StrCat("KV block ", ToHex(key), ": ", why.message()));
}

}  // namespace

KvDiskStore::KvDiskStore(std::unique_ptr<KvFolder> folder, const KvDiskOptions& options)
    : folder_(std::move(folder)), options_(options), index_(options.max_bytes) {}

absl::StatusOr<std::unique_ptr<KvDiskStore>> KvDiskStore::Open(const std::string& path,
                                                               const KvDiskOptions& options) {
  auto folder = KvFolder::Open(path);
  if (!folder.ok()) return folder.status();
  (*folder)->RemoveTemporaries();
  std::unique_ptr<KvDiskStore> store(new KvDiskStore(*std::move(folder), options));
  store->Rescan();
  return store;
}

void KvDiskStore::Log(const std::string& text) const {
  if (options_.log) options_.log(absl::StrCat(folder_->path(), ": ", text));
}

absl::StatusOr<KvFileHead> KvDiskStore::ReadHead(const Hash256& key, uint64_t* used_ns,
                                                 uint64_t* bytes) {
  const auto file = folder_->OpenFile(kBlock, key);
  if (!file.ok()) return file.status();
  std::vector<std::byte> data(std::min(file->bytes, kKvFileMostHeadBytes));
  // Reads as much as a block of 64 tokens needs, and more only if the head is longer.
  const size_t usual = std::min<uint64_t>(data.size(), KvFileHeadBytes(64));
  if (absl::Status s = file->Read(0, {data.data(), usual}); !s.ok()) return s;
  auto head = ParseKvFileHead({data.data(), usual}, file->bytes);
  if (!head.ok() && usual < data.size()) {
    if (absl::Status s = file->Read(0, data); !s.ok()) return s;
    head = ParseKvFileHead(data, file->bytes);
  }
  if (head.ok() && head->key != key) return absl::InvalidArgumentError("is another block");
  *used_ns = file->used_ns;
  *bytes = file->bytes;
  return head;
}

// Returns the readable blocks, the least recently used first.
std::vector<StoreItem> KvDiskStore::ReadHeads(const std::vector<Hash256>& keys) {
  std::vector<std::pair<uint64_t, StoreItem>> found;
  for (const Hash256& key : keys) {
    uint64_t used_ns = 0, bytes = 0;
    const auto head = ReadHead(key, &used_ns, &bytes);
    if (!head.ok()) {
      FoundFault(key, head.status());
      continue;
    }
    found.push_back({used_ns, {key, head->parent, head->first_position, head->block_bytes, bytes}});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<StoreItem> items;
  items.reserve(found.size());
  for (const auto& [used_ns, item] : found) items.push_back(item);
  return items;
}

void KvDiskStore::Rescan() {
  if (scanning_.exchange(true)) return;
  absl::flat_hash_set<Hash256> missing;
  {
    std::lock_guard lock(mutex_);
    written_ = 0;
    for (const Hash256& key : index_.Keys()) missing.insert(key);
  }
  std::vector<Hash256> unknown;
  const absl::Status listed = folder_->ListBlocks([&](const Hash256& key) {
    if (missing.erase(key) == 0) unknown.push_back(key);
  });
  std::vector<Hash256> gone;
  if (listed.ok()) {
    const std::vector<StoreItem> items = ReadHeads(unknown);
    std::lock_guard lock(mutex_);
    for (const Hash256& key : missing) index_.Erase(key);
    index_.Load(items);
    index_.Trim(&gone);
    counters_.evictions += gone.size();
  } else {
    Log(std::string(listed.message()));
  }
  RemoveFiles(gone);
  scanning_ = false;
}

void KvDiskStore::RemoveFiles(const std::vector<Hash256>& keys) {
  for (const Hash256& key : keys) folder_->Remove(kBlock, key);
}

// Handles a file that can't be used. The error decides how it is counted and if it is removed.
void KvDiskStore::FoundFault(const Hash256& key, const absl::Status& why) {
  bool remove = false, tell = false;
  {
    std::lock_guard lock(mutex_);
    if (index_.Has(key)) index_.Erase(key);  // a block being written stays promised
    if (absl::IsInvalidArgument(why) || absl::IsDataLoss(why)) {
      ++counters_.damaged;
      remove = tell = true;
    } else if (absl::IsPermissionDenied(why)) {
      ++counters_.refused;
      tell = !std::exchange(refused_told_, true);
    } else if (!absl::IsNotFound(why)) {
      ++counters_.errors;
      tell = !std::exchange(read_error_told_, true);
    }
  }
  if (remove) folder_->Remove(kBlock, key);
  if (tell) Log(std::string(Named(key, why).message()));
}

bool KvDiskStore::Contains(const Hash256& key) {
  {
    std::lock_guard lock(mutex_);
    if (index_.Has(key)) return true;
  }
  return folder_->Exists(kBlock, key);
}

absl::StatusOr<std::shared_ptr<const KvPayload>> KvDiskStore::Read(const KvBlock& block) {
  const auto file = folder_->OpenFile(kBlock, block.key);
  if (!file.ok()) return file.status();
  // Reads the head that such a block has. A file with a longer head is refused.
  std::vector<std::byte> data(
      std::min<uint64_t>(file->bytes, KvFileHeadBytes(block.tokens.size())));
  if (absl::Status s = file->Read(0, data); !s.ok()) return s;
  const auto head = ParseKvFileHead(data, file->bytes);
  if (!head.ok()) return head.status();
  if (absl::Status s = CheckKvFileHead(*head, block); !s.ok()) return s;
  auto payload = std::make_shared<KvPayload>(head->form, head->payload_bytes);
  if (absl::Status s = file->Read(data.size(), payload->bytes()); !s.ok()) return s;
  if (Hash64(payload->data.get(), payload->size, 0) != head->payload_hash) {
    return absl::DataLossError("is damaged");
  }
  std::lock_guard lock(mutex_);
  index_.Arrived(ItemOf(block, file->bytes));  // another process may have written it
  ++counters_.hits;
  return payload;
}

absl::StatusOr<std::shared_ptr<const KvPayload>> KvDiskStore::Get(const KvBlock& block) {
  auto payload = Read(block);
  if (payload.ok()) {
    Used(block.key);
    return payload;
  }
  FoundFault(block.key, payload.status());
  std::lock_guard lock(mutex_);
  ++counters_.misses;
  return Named(block.key, payload.status());
}

void KvDiskStore::Used(const Hash256& key) {
  {
    std::lock_guard lock(mutex_);
    if (!index_.Use(key)) return;
    const Clock::time_point now = Clock::now();
    if (touched_.size() >= kMostTouched) touched_.clear();
    const auto [at, first] = touched_.try_emplace(key, now);
    if (!first && now - at->second < options_.touch_every) return;
    at->second = now;
  }
  folder_->Touch(kBlock, key);
}

void KvDiskStore::Touch(const Hash256& key) { Used(key); }

absl::Status KvDiskStore::WriteFailed(const absl::Status& why) {
  const absl::Status status(why.code(),
                            absl::StrCat("KV blocks are not written for now: ", why.message()));
  {
    std::lock_guard lock(mutex_);
    ++counters_.errors;
    paused_until_ = Clock::now() + options_.pause;
    if (std::exchange(failing_, true)) return status;
  }
  Log(std::string(status.message()));
  return status;
}

absl::Status KvDiskStore::Write(const KvBlock& block, const KvPayload& payload) {
  const std::vector<std::byte> head = EncodeKvFileHead(block, payload);
  return folder_->Write(kBlock, block.key, head, payload.bytes(), options_.sync);
}

absl::Status KvDiskStore::Put(const KvBlock& block, std::shared_ptr<const KvPayload> payload) {
  if (absl::Status s = CheckKvBlock(block, *payload); !s.ok()) return s;
  const StoreItem item = ItemOf(block, KvFileHeadBytes(block.tokens.size()) + payload->size);
  std::vector<Hash256> gone;
  StoreIndex::Answer answer;
  {
    std::lock_guard lock(mutex_);
    if (failing_ && Clock::now() < paused_until_) {
      return absl::FailedPreconditionError("KV blocks are not written for now");
    }
    answer = index_.Promise(item, &gone);
    counters_.evictions += gone.size();
    if (answer == StoreIndex::Answer::kDeclined) ++counters_.declined;
  }
  RemoveFiles(gone);
  if (answer == StoreIndex::Answer::kDeclined) return absl::OkStatus();
  if (answer == StoreIndex::Answer::kThere) {
    // Another process may have removed the file to make room.
    if (folder_->Exists(kBlock, block.key)) {
      Used(block.key);
      return absl::OkStatus();
    }
  }
  const absl::Status written = Write(block, *payload);
  bool rescan = false;
  {
    std::lock_guard lock(mutex_);
    if (written.ok()) {
      failing_ = false;
      index_.Arrived(item);
      ++counters_.writes;
      written_ += item.bytes;
      rescan = written_ >
               std::max(options_.max_bytes / kScansPerStore, kLeastBlocksPerScan * item.bytes);
    } else {
      index_.Broken(block.key);
    }
  }
  if (!written.ok()) return WriteFailed(written);
  if (rescan) Rescan();
  return absl::OkStatus();
}

KvStoreCounters KvDiskStore::counters() const {
  std::lock_guard lock(mutex_);
  KvStoreCounters counters = counters_;
  counters.blocks = index_.blocks();
  counters.bytes = index_.bytes();
  return counters;
}

}  // namespace trine
