// A model file that goes with the test.
#ifndef TRINE_TESTS_MODEL_TEMP_FILE_H_
#define TRINE_TESTS_MODEL_TEMP_FILE_H_

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

#endif  // TRINE_TESTS_MODEL_TEMP_FILE_H_
