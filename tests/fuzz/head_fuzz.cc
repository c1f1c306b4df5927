// Reads any text as a head and as training data. It is refused with a message, or read; a head is
// the same after being written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/head/head_data.h"
#include "runtime/head/head_file.h"

namespace trine {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void Read(std::string_view text) {
  const auto data = ParseHeadData(text);
  if (!data.ok()) Require(!data.status().message().empty());
  const auto head = ParseHead(text);
  if (!head.ok()) return Require(!head.status().message().empty());
  const auto written = FormatHead(*head);
  Require(written.ok());
  const auto again = ParseHead(*written);
  Require(again.ok() && *FormatHead(*again) == *written);
}

}  // namespace
}  // namespace trine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trine::Read({reinterpret_cast<const char*>(data), size});
  return 0;
}
