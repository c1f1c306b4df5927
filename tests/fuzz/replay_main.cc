// Runs a fuzz target once over each file of a folder, with any compiler, so that bugs found once
// stay found.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  std::error_code error;
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1], error)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(in)),
                                  std::istreambuf_iterator<char>());
    std::printf("%s, %zu bytes\n", entry.path().c_str(), bytes.size());
    std::fflush(stdout);  // the last line names the file that ended the process
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    ++files;
  }
  if (files == 0) {
    std::fprintf(stderr, "%s: no files to replay\n", argv[1]);
    return 1;
  }
  std::printf("%zu files\n", files);
  return 0;
}
