// A folder of block files, for one user alone: who may use it, and files that appear whole.
//
//   DIR/blocks-1/ab/abcd...     a block, named by its key, in one of 256 folders by its first byte
//   DIR/models-1/abcd...        a model's hash, named by what its files look like (model_hash.h)
//   DIR/temporary/PID-N-RANDOM  a file that is being written, locked (flock) by who writes it
//
// The numbers are those of the formats: another version has folders of its own. A file is written
// as a temporary one and renamed, so whoever looks sees all of it or nothing; several processes may
// do so at once, since equal names hold the same. Whoever opens a file has it until he closes it,
// even if another removes it meanwhile. Folders are made with mode 0700, files with 0600.
//
// Nothing that others may have written is used: DIR and the folders in it have to belong to the
// user of this process, and nobody else may be allowed to write to them; the same goes for every
// file that is opened. Symbolic links below DIR are not followed.
//
// Any thread may call anything.
#ifndef TRINE_RUNTIME_KV_STORE_KV_FOLDER_H_
#define TRINE_RUNTIME_KV_STORE_KV_FOLDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/kv_store/hash256.h"

namespace trine {

// Owns what open(2) gave.
class KvDescriptor {
 public:
  explicit KvDescriptor(int fd = -1) : fd_(fd) {}
  ~KvDescriptor();
  KvDescriptor(KvDescriptor&& other) noexcept;
  KvDescriptor& operator=(KvDescriptor&& other) noexcept;

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

// A file of a folder, open for reading.
struct KvOpenFile {
  KvDescriptor fd;
  uint64_t bytes = 0;
  uint64_t used_ns = 0;  // its time of modification: when it was last used

  // All of `out` from byte `at` on. DATA_LOSS where the file ends before.
  absl::Status Read(uint64_t at, std::span<std::byte> out) const;
};

class KvFolder {
 public:
  enum class Kind { kBlock, kModel };

  // Makes what is missing. FAILED_PRECONDITION where it is not the user's alone. One that can't be
  // written is no error: writing to it will be.
  static absl::StatusOr<std::unique_ptr<KvFolder>> Open(const std::string& path);

  // NOT_FOUND; PERMISSION_DENIED where others may have written it; UNAVAILABLE.
  absl::StatusOr<KvOpenFile> OpenFile(Kind kind, const Hash256& key) const;
  // Both parts, one after the other. `sync`: they are on the disk before the file has its name.
  // RESOURCE_EXHAUSTED where there is no room, PERMISSION_DENIED, UNAVAILABLE.
  absl::Status Write(Kind kind, const Hash256& key, std::span<const std::byte> first,
                     std::span<const std::byte> second, bool sync) const;
  bool Exists(Kind kind, const Hash256& key) const;
  void Remove(Kind kind, const Hash256& key) const;
  // It was used now.
  void Touch(Kind kind, const Hash256& key) const;

  // Every block's name, in no order. Files of other names are passed over.
  absl::Status ListBlocks(const std::function<void(const Hash256&)>& each) const;
  // Removes temporary files whose writers are gone; says how many.
  int RemoveTemporaries() const;

  const std::string& path() const { return path_; }

 private:
  explicit KvFolder(std::string path) : path_(std::move(path)) {}

  struct Temporary;
  absl::StatusOr<Temporary> MakeTemporary() const;
  int FolderOf(Kind kind) const { return kind == Kind::kBlock ? blocks_.get() : models_.get(); }

  std::string path_;
  KvDescriptor blocks_, models_, temporary_;  // any may be missing where nothing can be written
};

}  // namespace trine

#endif  // TRINE_RUNTIME_KV_STORE_KV_FOLDER_H_
