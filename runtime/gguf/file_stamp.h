// What tells quickly that a file is still the one it was.
#ifndef TRINE_RUNTIME_GGUF_FILE_STAMP_H_
#define TRINE_RUNTIME_GGUF_FILE_STAMP_H_

#include <cstdint>

namespace trine::gguf {

// Of the file that was opened, whatever has its name later.
struct FileStamp {
  uint64_t bytes = 0;
  uint64_t modified_ns = 0;  // since 1970
  uint64_t changed_ns = 0;   // likewise; unlike the other, no program can put it back
  uint64_t device = 0;
  uint64_t inode = 0;  // 0: it was never a file

  bool operator==(const FileStamp&) const = default;
};

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_FILE_STAMP_H_
