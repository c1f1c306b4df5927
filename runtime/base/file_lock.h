// A lock between processes that write the same files. It lasts as long as its object.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace trine {

class FileLock {
 public:
  enum class Kind {
    kFile,    // the file at the path, which is made if it is not there
    kFolder,  // the folder of the file at the path
  };
  FileLock(const std::string& path, Kind kind);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Waits until no other process has the lock; nullopt: as long as that takes. Returns
  // DEADLINE_EXCEEDED if others had it all the time, and UNAVAILABLE, saying why, if there can be
  // no lock: some file systems have none.
  absl::Status Lock(std::optional<std::chrono::milliseconds> most = std::nullopt);

 private:
  int fd_ = -1;
  int error_ = 0;
};

}  // namespace trine
