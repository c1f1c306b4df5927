// Reads any bytes as a capture of passes. They are refused with a message, or read with as many
// hashes and values for each pass as there are taps, and all values within the bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/graph/capture_file.h"

namespace trine {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void Read(std::span<const std::byte> bytes) {
  const auto file = CaptureFile::Parse(bytes);
  if (!file.ok()) return Require(!file.status().message().empty());
  volatile uint64_t sum = 0;  // makes sure that the bytes are read
  for (const CapturedPass& pass : (*file)->passes()) {
    Require(pass.hashes.size() == (*file)->head().taps.size());
    Require(pass.values.empty() || pass.values.size() == pass.hashes.size());
    for (const std::span<const std::byte> value : pass.values) {
      for (const std::byte b : value) sum = sum + static_cast<uint64_t>(b);
    }
  }
}

}  // namespace
}  // namespace trine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes(size);  // a copy, so that a read behind it is found
  if (size != 0) std::memcpy(bytes.data(), data, size);
  trine::Read(bytes);
  return 0;
}
