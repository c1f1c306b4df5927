// Any text as a head and as data to train one with: refused with a sentence, or read; a head that
// was read is the same when it has been written and read again.
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
