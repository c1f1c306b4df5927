// A model file that is removed after the test.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace trine {

class TempFile {
 public:
  explicit TempFile(const std::vector<std::byte>& bytes) {
    static int count = 0;
    path_ = (std::filesystem::temp_directory_path() /
             ("trine-test-" + std::to_string(getpid()) + "-" + std::to_string(count++) + ".gguf"))
                .string();
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace trine
