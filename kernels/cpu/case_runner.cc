#include "kernels/cpu/case_runner.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace trine::cpu_kernels {
namespace {

uint32_t WordAt(const std::vector<std::byte>& bytes, size_t at) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.data() + at, std::min<size_t>(sizeof(word), bytes.size() - at));
  return word;
}

}  // namespace

std::string CaseRunner::Describe(const std::string& what, bool flush,
                                 const std::vector<std::byte>& expected,
                                 const std::vector<std::byte>& found) {
  const auto difference = std::mismatch(expected.begin(), expected.end(), found.begin());
  const size_t at = static_cast<size_t>(difference.first - expected.begin()) / 4 * 4;
  char words[80];
  std::snprintf(words, sizeof(words), ": byte %zu: found %08" PRIx32 ", expected %08" PRIx32, at,
                WordAt(found, at), WordAt(expected, at));
  return what + (flush ? ", denormals flushed" : "") + words;
}

bool F16HeedsFlushing(const KernelTable& table) {
  const reference::Tensor half(quant::Type::kF16, {1}), value(quant::Type::kF32, {1});
  *reinterpret_cast<uint16_t*>(half.view().data) = 1;
  const quant::ScopedFlushToZero flush_to_zero;
  table.copy(half, value, {0, 1});
  return value.Row(0)[0] == 0.0f;
}

}  // namespace trine::cpu_kernels
