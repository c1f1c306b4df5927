// Keeps KV blocks in a folder, each in a file (KvFolder, kv_file.h; docs/kv.md). Blocks are found
// again after a restart, and processes that use the same folder share them. Any thread may call any
// method.
//
// The index (StoreIndex) has the blocks that this process knows to be in the folder, and decides
// which blocks are removed when there is no room. It is built from the heads of the files when the
// store is opened. Other processes change the folder, too, so the index is updated each time this
// process has written a sixteenth of max_bytes (and at least 64 blocks). Get looks into the folder,
// so it finds blocks that the index does not have yet.
//
// A file is used only after every byte has been checked: the head, the tokens, and the payload
// against its hash. A damaged file is counted, logged and removed. A block that was put survives
// the death of the process; a power cut may lose or damage it, unless `sync` is set.
//
// If the disk can't be written to, Put fails, logs that once, and writes nothing for a while; then
// it tries again. Get continues to work.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/kv_store/kv_file.h"
#include "runtime/kv_store/kv_folder.h"
#include "runtime/kv_store/kv_store.h"
#include "runtime/kv_store/store_index.h"

namespace trine {

struct KvDiskOptions {
  uint64_t max_bytes = uint64_t{16} << 30;      // the most bytes of all files together
  bool sync = false;                            // true: fsync a file before it gets its name
  std::function<void(const std::string&)> log;  // called with problems, on any thread
  std::chrono::milliseconds pause = std::chrono::minutes(1);  // no write so long after a failed one
  // The least time between two updates of a file's time.
  std::chrono::milliseconds touch_every = std::chrono::minutes(1);
};

class KvDiskStore : public KvStore {
 public:
  // Makes the folder if it is missing, removes unfinished files of killed processes, and reads all
  // heads. Returns FAILED_PRECONDITION if other users may write to the folder.
  static absl::StatusOr<std::unique_ptr<KvDiskStore>> Open(const std::string& path,
                                                           const KvDiskOptions& options);

  bool Contains(const Hash256& key) override;
  absl::StatusOr<std::shared_ptr<const KvPayload>> Get(const KvBlock& block) override;
  // Also returns FAILED_PRECONDITION, at once, during the pause after a failed write.
  absl::Status Put(const KvBlock& block, std::shared_ptr<const KvPayload> payload) override;
  void Touch(const Hash256& key) override;
  KvStoreCounters counters() const override;

  // Updates the index from the folder. Put also does this now and then, so only a process that
  // writes nothing has to call it.
  void Rescan();

  const KvFolder& folder() const { return *folder_; }

 private:
  using Clock = std::chrono::steady_clock;

  KvDiskStore(std::unique_ptr<KvFolder> folder, const KvDiskOptions& options);

  absl::StatusOr<std::shared_ptr<const KvPayload>> Read(const KvBlock& block);
  absl::Status Write(const KvBlock& block, const KvPayload& payload);
  absl::StatusOr<KvFileHead> ReadHead(const Hash256& key, uint64_t* used_ns, uint64_t* bytes);
  std::vector<StoreItem> ReadHeads(const std::vector<Hash256>& keys);
  void FoundFault(const Hash256& key, const absl::Status& why);
  absl::Status WriteFailed(const absl::Status& why);
  void Used(const Hash256& key);
  void RemoveFiles(const std::vector<Hash256>& keys);
  void Log(const std::string& text) const;

  const std::unique_ptr<KvFolder> folder_;
  const KvDiskOptions options_;
  std::atomic<bool> scanning_ = false;
  mutable std::mutex mutex_;  // guards all members after it; never held during file access
  StoreIndex index_;
  absl::flat_hash_map<Hash256, Clock::time_point> touched_;  // when a file's time was last set
  KvStoreCounters counters_;
  uint64_t written_ = 0;  // bytes written since the last scan
  bool failing_ = false;  // the last write failed
  Clock::time_point paused_until_;
  bool read_error_told_ = false, refused_told_ = false;
};

}  // namespace trine
