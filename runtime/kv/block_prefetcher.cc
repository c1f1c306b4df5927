#include "runtime/kv/block_prefetcher.h"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

struct BlockPrefetcher::Prefetch::Work {
  std::string owner;
  std::vector<int32_t> tokens;
  int64_t first = 0;
  // Only the prefetcher's thread uses these.
  std::shared_ptr<const KvSpace> space;
  std::vector<KvBlock> blocks;
  size_t next = 0;
  Clock::time_point begin;
  int64_t brought = 0;
  // Guarded by the prefetcher's mutex.
  std::vector<Hash256> joined;  // blocks in the stage; has room for all
  bool over = false;            // the Prefetch was destroyed
};

absl::StatusOr<std::unique_ptr<BlockPrefetcher>> BlockPrefetcher::Start(Options options) {
  std::unique_ptr<BlockPrefetcher> prefetcher(new BlockPrefetcher(std::move(options)));
  try {
    prefetcher->thread_ = std::thread([p = prefetcher.get()] { p->Run(); });
    pthread_setname_np(prefetcher->thread_.native_handle(), "trine-kv-fetch");
  } catch (const std::system_error& e) {
    return absl::ResourceExhaustedError(absl::StrCat("a thread that prefetches: ", e.what()));
  }
  return prefetcher;
}

BlockPrefetcher::~BlockPrefetcher() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<BlockPrefetcher::Prefetch> BlockPrefetcher::Begin(std::string owner,
                                                                  std::vector<int32_t> tokens,
                                                                  int64_t first) {
  auto work = std::make_shared<Prefetch::Work>();
  work->owner = std::move(owner);
  work->tokens = std::move(tokens);
  work->first = first;
  std::unique_ptr<Prefetch> prefetch(new Prefetch(this, work));
  std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  ++counters_.begun;
  changed_.notify_all();
  return prefetch;
}

void BlockPrefetcher::Prefetch::Stop() noexcept {
  std::lock_guard lock(prefetcher_->mutex_);
  prefetcher_->counters_.cut += std::erase(prefetcher_->queue_, work_);
}

BlockPrefetcher::Prefetch::~Prefetch() {
  Stop();
  std::vector<Hash256> joined;
  {
    std::lock_guard lock(prefetcher_->mutex_);
    work_->over = true;
    joined.swap(work_->joined);
  }
  for (const Hash256& key : joined) prefetcher_->stage_.Leave(key);
  // Under the lock, so that the thread can't miss the new room between its check and its wait.
  std::lock_guard lock(prefetcher_->mutex_);
  prefetcher_->changed_.notify_all();
}

// Only the oldest prefetch may read, even if a later one needs less room.
bool BlockPrefetcher::CanBring() const {
  return !queue_.empty() && !yields_ && stage_.bytes() + options_.block_bytes <= options_.max_bytes;
}

void BlockPrefetcher::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || CanBring(); });
    if (ending_) return;
    const std::shared_ptr<Prefetch::Work> work = queue_.front();
    lock.unlock();
    const Clock::time_point begin = Clock::now();
    bool more = false;
    try {
      more = Bring(work.get());
    } catch (const std::bad_alloc&) {  // the prefetch ends with what was read
    }
    const auto took = std::chrono::nanoseconds(Clock::now() - begin);
    if (!more && work->brought > 0 && options_.told) options_.told(work->begin, work->brought);
    lock.lock();
    counters_.ns += static_cast<uint64_t>(took.count());
    if (!more) counters_.done += std::erase(queue_, work);
  }
}

void BlockPrefetcher::MakeBlocks(Prefetch::Work* work) {
  work->begin = Clock::now();
  auto space = options_.space(work->owner);
  if (!space.ok()) return;  // the fetch will report it
  work->blocks = KvBlocksOf(**space, work->tokens);
  work->next = static_cast<size_t>(work->first);
  work->space = *std::move(space);
  std::lock_guard lock(mutex_);
  work->joined.reserve(work->blocks.size());
}

bool BlockPrefetcher::Bring(Prefetch::Work* work) {
  if (work->space == nullptr) MakeBlocks(work);
  if (work->next >= work->blocks.size()) return false;
  const KvBlock& block = work->blocks[work->next++];
  const bool more = work->next < work->blocks.size();
  if (options_.host != nullptr && options_.host->Contains(block.key)) return more;
  const bool staged = stage_.Join(block);
  if (!staged) {
    auto found = options_.disk->Get(block);
    if (!found.ok()) return false;  // the store has reported it
    stage_.Add(block, *std::move(found));
    ++work->brought;
  }
  {
    std::lock_guard lock(mutex_);
    if (!staged) ++counters_.blocks;
    if (!work->over) {
      work->joined.push_back(block.key);
      return more;
    }
  }
  stage_.Leave(block.key);
  return false;
}

std::shared_ptr<const KvPayload> BlockPrefetcher::Find(const KvBlock& block) {
  auto found = stage_.Find(block);
  if (found == nullptr) return nullptr;
  std::lock_guard lock(mutex_);
  ++counters_.used;
  return found;
}

void BlockPrefetcher::Yield(bool waits) {
  std::lock_guard lock(mutex_);
  yields_ = waits;
  changed_.notify_all();
}

BlockPrefetchCounters BlockPrefetcher::counters() const {
  std::lock_guard lock(mutex_);
  BlockPrefetchCounters counters = counters_;
  counters.bytes = stage_.bytes();
  return counters;
}

// Compares everything that goes into the key, because an equal key alone is not trusted.
bool BlockStage::Staged::IsOf(const KvBlock& block) const {
  return space == block.space->id() && parent == block.parent &&
         first_position == block.first_position && std::ranges::equal(tokens, block.tokens);
}

bool BlockStage::Join(const KvBlock& block) {
  std::lock_guard lock(mutex_);
  const auto found = staged_.find(block.key);
  if (found == staged_.end() || !found->second.IsOf(block)) return false;
  ++found->second.expected_by;
  return true;
}

void BlockStage::Add(const KvBlock& block, std::shared_ptr<const KvPayload> payload) {
  std::lock_guard lock(mutex_);
  std::vector<int32_t> tokens(block.tokens.begin(), block.tokens.end());
  Staged& staged = staged_[block.key];
  ++staged.expected_by;
  if (staged.payload != nullptr) return;
  staged.space = block.space->id();
  staged.parent = block.parent;
  staged.first_position = block.first_position;
  staged.tokens = std::move(tokens);
  staged.payload = std::move(payload);
  bytes_ += staged.payload->size;
}

void BlockStage::Leave(const Hash256& key) noexcept {
  std::shared_ptr<const KvPayload> gone;  // destroyed after the lock is released
  std::lock_guard lock(mutex_);
  const auto found = staged_.find(key);
  if (found == staged_.end() || --found->second.expected_by > 0) return;
  gone = std::move(found->second.payload);
  bytes_ -= gone->size;
  staged_.erase(found);
}

std::shared_ptr<const KvPayload> BlockStage::Find(const KvBlock& block) const {
  std::lock_guard lock(mutex_);
  const auto found = staged_.find(block.key);
  return found == staged_.end() || !found->second.IsOf(block) ? nullptr : found->second.payload;
}

uint64_t BlockStage::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace trine
