// KV blocks in a folder, a file for each (KvFolder, kv_file.h; docs/kv.md): found again after a
// restart, shared by processes that use the same folder. Any thread may call anything.
//
// The folder is the truth; the index (StoreIndex) is what this process knows of it, and decides
// what goes when there is no room. It is made from the files' heads when the store is opened, and
// again whenever this process has written a sixteenth of max_bytes, for what others have done
// meanwhile. Blocks that others have written are found in any case.
//
// A file is used when every byte of it has been checked: head, tokens and all, and the payload
// against its hash. One that is damaged is counted, told of and removed. A block that was put is
// there when the process is killed; a power cut may take it, or damage it, unless `sync` is set.
//
// When the disk can't be written to, Put says so once, through `log` too, and writes nothing for a
// while; then it tries again. Get goes on.
#ifndef TRINE_RUNTIME_KV_STORE_KV_DISK_STORE_H_
#define TRINE_RUNTIME_KV_STORE_KV_DISK_STORE_H_

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
  uint64_t max_bytes = uint64_t{16} << 30;                    // of files, by their size
  bool sync = false;                                          // fsync before a file has its name
  std::function<void(const std::string&)> log;                // what is wrong; from any thread
  std::chrono::milliseconds pause = std::chrono::minutes(1);  // after a failed write
  std::chrono::milliseconds touch_every = std::chrono::minutes(1);  // at most, a file's time
};

class KvDiskStore : public KvStore {
 public:
  // Makes the folder, removes what killed processes have left half written, reads all heads.
  // FAILED_PRECONDITION where others may write to it.
  static absl::StatusOr<std::unique_ptr<KvDiskStore>> Open(const std::string& path,
                                                           const KvDiskOptions& options);

  bool Contains(const Hash256& key) override;
  absl::StatusOr<std::shared_ptr<const KvPayload>> Get(const KvBlock& block) override;
  // Also FAILED_PRECONDITION, quickly: it pauses after a failed write.
  absl::Status Put(const KvBlock& block, std::shared_ptr<const KvPayload> payload) override;
  void Touch(const Hash256& key) override;
  KvStoreCounters counters() const override;

  // The folder as it is now. By itself as said above; by hand where nothing is written.
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
  mutable std::mutex mutex_;  // guards what follows; never held while a file is touched
  StoreIndex index_;
  absl::flat_hash_map<Hash256, Clock::time_point> touched_;  // when its file's time was set
  KvStoreCounters counters_;
  uint64_t written_ = 0;  // bytes since the last scan
  bool failing_ = false;  // the last write did
  Clock::time_point paused_until_;
  bool read_error_told_ = false, refused_told_ = false;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_KV_STORE_KV_DISK_STORE_H_
