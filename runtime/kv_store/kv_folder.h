// A folder of block files that belongs to one user. Readers only ever see whole files.
//
//   DIR/blocks-1/ab/abcd...     a block, named by its key; 256 folders, one for each first byte
//   DIR/models-1/abcd...        a model's hash, named by the stamps of its files (model_hash.h)
//   DIR/temporary/PID-N-RANDOM  a file that is being written, locked (flock) by its writer
//
// The number after a folder's name is a format version, so each version has its own folders. A file
// is written under a temporary name and renamed, so readers see all of the file or nothing. Several
// processes may write the same name at once, because equal names have equal contents. An open file
// stays readable until it is closed, even if another process removes it. Folders are made with mode
// 0700, files with mode 0600.
//
// Nothing that other users may have written is used: DIR, the folders in DIR, and every file that
// is opened must belong to the user of this process, and other users must not be allowed to write
// to them. Symbolic links below DIR are not followed.
//
// Any thread may call any method.
#pragma once

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

// Owns a file descriptor and closes it.
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
  uint64_t used_ns = 0;  // the time of last use, which is kept as the modification time

  // Fills `out` with the file's bytes from byte `at` on. Returns DATA_LOSS if the file is too
  // short.
  absl::Status Read(uint64_t at, std::span<std::byte> out) const;
};

class KvFolder {
 public:
  enum class Kind { kBlock, kModel };

  // Opens the folder and makes missing folders. Returns FAILED_PRECONDITION if other users may
  // write to one of them. It is no error if this process can't write to a folder; Write then fails.
  static absl::StatusOr<std::unique_ptr<KvFolder>> Open(const std::string& path);

  // Opens a file. Returns NOT_FOUND if there is no file, PERMISSION_DENIED if other users may have
  // written it, and UNAVAILABLE for other failures.
  absl::StatusOr<KvOpenFile> OpenFile(Kind kind, const Hash256& key) const;
  // Writes a file of `first`, then `second`. If `sync` is true, both are on the disk before the
  // file gets its name. Returns RESOURCE_EXHAUSTED if there is no room, PERMISSION_DENIED, or
  // UNAVAILABLE.
  absl::Status Write(Kind kind, const Hash256& key, std::span<const std::byte> first,
                     std::span<const std::byte> second, bool sync) const;
  bool Exists(Kind kind, const Hash256& key) const;
  void Remove(Kind kind, const Hash256& key) const;
  // Sets a file's time of last use to the current time.
  void Touch(Kind kind, const Hash256& key) const;

  // Calls `each` with the key of every block, in no order. Skips files with other names.
  absl::Status ListBlocks(const std::function<void(const Hash256&)>& each) const;
  // Removes temporary files whose writers have ended. Returns how many it removed.
  int RemoveTemporaries() const;

  const std::string& path() const { return path_; }

 private:
  explicit KvFolder(std::string path) : path_(std::move(path)) {}

  struct Temporary;
  absl::StatusOr<Temporary> MakeTemporary() const;
  int FolderOf(Kind kind) const { return kind == Kind::kBlock ? blocks_.get() : models_.get(); }

  std::string path_;
  KvDescriptor blocks_, models_, temporary_;  // -1: the folder is missing and can't be written to
};

}  // namespace trine
