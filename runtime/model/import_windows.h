// Which stretches of memory to import so that a device sees some ranges of it.
#ifndef TRINE_RUNTIME_MODEL_IMPORT_WINDOWS_H_
#define TRINE_RUNTIME_MODEL_IMPORT_WINDOWS_H_

#include <cstdint>
#include <vector>

namespace trine {

struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool Holds(const ByteRange& other) const { return begin <= other.begin && other.end <= end; }
  bool operator==(const ByteRange&) const = default;
};

// As few windows as hold each range whole, in order: beginning and ending at multiples of
// `alignment` but never beyond `memory_bytes`, of at most `max_bytes` (0: any number) unless a
// single range has more, and without large stretches that nobody asked for. Neighbours may share a
// page.
std::vector<ByteRange> ImportWindows(std::vector<ByteRange> ranges, uint64_t alignment,
                                     uint64_t max_bytes, uint64_t memory_bytes);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_IMPORT_WINDOWS_H_
