#include "runtime/kv/block_keeper.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/kv_store/model_hash.h"

namespace trine {
namespace {

// The most bytes that wait to be written. Further blocks are dropped, so that passes do not wait
// for a disk that is slower than the model.
constexpr uint64_t kMostWaiting = uint64_t{512} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<BlockKeeper>> BlockKeeper::Create(
    const gguf::File& file, KvSpaceFields fields, uint64_t block_bytes, int threads,
    const BlockKeeperOptions& options) {
  auto codec = KvCodec::Create(fields.layout);
  if (!codec.ok()) return codec.status();
  if (codec->block_bytes() != block_bytes) {
    return absl::UnimplementedError(
        absl::StrCat("a block of this model's cache has ", block_bytes, " bytes, and not the ",
                     codec->block_bytes(), " of layers that are all alike: it can't be kept"));
  }
  if (!options.lossy && !codec->IsExact(options.form)) {
    return Invalid("blocks kept as ", KvFormName(options.form),
                   " lose bits: answers would not be exact. Allow that (kv_lossy, --kv-lossy), "
                   "or keep them raw");
  }
  // A form that loses nothing shares its blocks with the raw form.
  fields.form = codec->IsExact(options.form) ? KvForm::kRaw : options.form;
  std::unique_ptr<KvDiskStore> disk;
  if (!options.folder.empty()) {
    KvDiskOptions on_disk;
    on_disk.max_bytes = options.disk_bytes;
    on_disk.log = options.log;
    auto opened = KvDiskStore::Open(options.folder, on_disk);
    if (!opened.ok()) return opened.status();
    disk = *std::move(opened);
    fields.model = HashModelOnce(file, threads, disk->folder());
  }
  std::unique_ptr<BlockKeeper> keeper(new BlockKeeper(std::move(fields), *codec, options));
  keeper->disk_ = std::move(disk);
  if (options.host_bytes != 0) {
    keeper->host_ = std::make_unique<KvHostStore>(KvHostOptions{options.host_bytes, nullptr});
  }
  if (keeper->disk_ != nullptr && options.prefetch_bytes != 0) {
    auto prefetcher = BlockPrefetcher::Start(
        {options.prefetch_bytes, keeper->codec_.block_bytes(),
         [k = keeper.get()](const std::string& owner) { return k->SpaceOf(owner); },
         keeper->disk_.get(), keeper->host_.get(), options.prefetched});
    if (!prefetcher.ok()) return prefetcher.status();
    keeper->prefetcher_ = *std::move(prefetcher);
  }
  try {
    keeper->reader_ = std::thread([k = keeper.get()] { k->Read(); });
    pthread_setname_np(keeper->reader_.native_handle(), "trine-kv-read");
    keeper->writer_ = std::thread([k = keeper.get()] { k->Write(); });
    pthread_setname_np(keeper->writer_.native_handle(), "trine-kv-write");
  } catch (const std::system_error& e) {
    return absl::ResourceExhaustedError(absl::StrCat("threads that keep blocks: ", e.what()));
  }
  return keeper;
}

BlockKeeper::~BlockKeeper() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    asked_.notify_all();
    handed_over_.notify_all();
  }
  if (reader_.joinable()) reader_.join();
  if (writer_.joinable()) writer_.join();
  prefetcher_.reset();  // its thread calls SpaceOf
}

absl::StatusOr<std::shared_ptr<const KvSpace>> BlockKeeper::SpaceOf(const std::string& owner) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<const KvSpace>& known = spaces_[owner];
  if (known != nullptr) return known;
  KvSpaceFields fields = fields_;
  fields.owner = owner;
  auto made = KvSpace::Create(fields);
  if (!made.ok()) return made.status();
  known = std::make_shared<const KvSpace>(*std::move(made));
  return known;
}

std::shared_ptr<BlockKeeper::Fetch> BlockKeeper::Begin(const std::string& space,
                                                       std::vector<int32_t> tokens, int64_t first,
                                                       std::function<void()> told) {
  auto fetch = std::make_shared<Fetch>();
  fetch->space_ = space;
  fetch->tokens_ = std::move(tokens);
  fetch->first_ = first;
  fetch->told_ = std::move(told);
  std::lock_guard lock(mutex_);
  fetches_.push_back(fetch);
  asked_.notify_one();
  return fetch;
}

std::unique_ptr<BlockPrefetcher::Prefetch> BlockKeeper::Prefetch(const std::string& space,
                                                                 std::vector<int32_t> tokens,
                                                                 int64_t first) {
  return prefetches() ? prefetcher_->Begin(space, std::move(tokens), first) : nullptr;
}

void BlockKeeper::Read() {
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [&] { return ending_ || !fetches_.empty(); });
    if (ending_) return;
    const std::shared_ptr<Fetch> fetch = std::move(fetches_.front());
    fetches_.pop_front();
    lock.unlock();
    if (fetch.use_count() > 1) {  // else the sequence has dropped it
      if (prefetcher_ != nullptr) prefetcher_->Yield(true);
      try {
        Find(fetch.get());
      } catch (const std::bad_alloc&) {  // the fetch ends with what was found
      }
      if (prefetcher_ != nullptr) prefetcher_->Yield(false);
      fetch->done_.store(true, std::memory_order_release);
      fetch->told_();
    }
    lock.lock();
  }
}

void BlockKeeper::Find(Fetch* fetch) {
  const auto begin = std::chrono::steady_clock::now();
  const auto space = SpaceOf(fetch->space_);
  if (!space.ok()) return Log(space.status());
  const std::vector<KvBlock> blocks = KvBlocksOf(**space, fetch->tokens_);
  for (size_t i = static_cast<size_t>(fetch->first_); i < blocks.size(); ++i) {
    const std::shared_ptr<const KvPayload> payload = Get(blocks[i]);
    if (payload == nullptr) break;
    auto bytes = std::make_shared<KvBlockBytes>(codec_.block_bytes());
    const auto exact = codec_.Decode(*payload, *bytes);
    if (!exact.ok() || (!*exact && !options_.lossy)) break;
    fetch->blocks_.push_back(std::move(bytes));
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  std::lock_guard lock(mutex_);
  counters_.found_blocks += fetch->blocks_.size();
  counters_.found_bytes += fetch->blocks_.size() * codec_.block_bytes();
  counters_.fetch_ns +=
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
}

std::shared_ptr<const KvPayload> BlockKeeper::Get(const KvBlock& block) {
  if (auto found = prefetcher_ == nullptr ? nullptr : prefetcher_->Find(block)) {
    if (host_ != nullptr) host_->Put(block, found).IgnoreError();
    return found;
  }
  if (host_ != nullptr) {
    auto found = host_->Get(block);
    if (found.ok()) {
      if (disk_ != nullptr) disk_->Touch(block.key);
      return *std::move(found);
    }
  }
  if (disk_ == nullptr) return nullptr;
  auto found = disk_->Get(block);
  if (!found.ok()) return nullptr;  // the store has reported it
  if (host_ != nullptr) host_->Put(block, *found).IgnoreError();
  return *std::move(found);
}

void BlockKeeper::Keep(const std::string& space, std::vector<int32_t> tokens,
                       std::shared_ptr<const KvBlockBytes> bytes) {
  std::lock_guard lock(mutex_);
  if (waiting_bytes_ + bytes->size() > kMostWaiting && !waiting_.empty()) {
    ++counters_.dropped_blocks;
    return;
  }
  waiting_bytes_ += bytes->size();
  waiting_.push_back({space, std::move(tokens), std::move(bytes)});
  handed_over_.notify_one();
}

void BlockKeeper::Write() {
  std::unique_lock lock(mutex_);
  while (true) {
    handed_over_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Kept kept = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= kept.bytes->size();
    lock.unlock();
    try {
      Store(kept);
    } catch (const std::bad_alloc&) {  // the block is not kept
    }
    lock.lock();
  }
}

void BlockKeeper::Store(const Kept& kept) {
  const auto space = SpaceOf(kept.space);
  if (!space.ok()) return Log(space.status());
  const std::vector<KvBlock> blocks = KvBlocksOf(**space, kept.tokens);
  const KvBlock& block = blocks.back();
  if (disk_ != nullptr && disk_->Contains(block.key)) {
    disk_->Touch(block.key);
    if (host_ == nullptr) return;
  }
  auto encoded = codec_.Encode(fields_.form, *kept.bytes);
  if (!encoded.ok()) return Log(encoded.status());
  const auto payload = std::make_shared<const KvPayload>(*std::move(encoded));
  if (host_ != nullptr) host_->Put(block, payload).IgnoreError();
  if (disk_ != nullptr) disk_->Put(block, payload).IgnoreError();  // the store reports it
}

void BlockKeeper::Log(const absl::Status& status) const {
  if (options_.log) options_.log(std::string(status.message()));
}

BlockKeeperCounters BlockKeeper::counters() const {
  BlockKeeperCounters counters;
  {
    std::lock_guard lock(mutex_);
    counters = counters_;
  }
  if (host_ != nullptr) counters.host = host_->counters();
  if (disk_ != nullptr) counters.disk = disk_->counters();
  if (prefetcher_ != nullptr) counters.prefetch = prefetcher_->counters();
  return counters;
}

}  // namespace trine
