// Sets of Unicode characters, as ranges. Surrogates are no characters and never in a set.
#ifndef TRINE_RUNTIME_CONSTRAINT_CODE_POINTS_H_
#define TRINE_RUNTIME_CONSTRAINT_CODE_POINTS_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace trine::constraint {

inline constexpr uint32_t kLastCodePoint = 0x10FFFF;

struct CodePointRange {
  uint32_t low;
  uint32_t high;  // inclusive
  friend bool operator==(const CodePointRange&, const CodePointRange&) = default;
};

class CodePointSet {
 public:
  CodePointSet() = default;
  CodePointSet(std::initializer_list<CodePointRange> ranges) {
    for (const CodePointRange& r : ranges) Add(r.low, r.high);
  }
  static CodePointSet All() { return {{0, kLastCodePoint}}; }

  void Add(uint32_t low, uint32_t high);
  void Add(const CodePointSet& other);
  CodePointSet Complement() const;
  CodePointSet Intersect(const CodePointSet& other) const;
  bool Contains(uint32_t code_point) const;
  bool empty() const { return ranges_.empty(); }
  // Ascending, with gaps between them.
  const std::vector<CodePointRange>& ranges() const { return ranges_; }
  friend bool operator==(const CodePointSet&, const CodePointSet&) = default;

 private:
  std::vector<CodePointRange> ranges_;
};

// A run of bytes, each from its range, that are the UTF-8 of some characters.
struct Utf8Sequence {
  int length = 0;
  struct {
    uint8_t low;
    uint8_t high;
  } bytes[4] = {};
};

// The UTF-8 of the set: every character by exactly one of the sequences.
std::vector<Utf8Sequence> Utf8Sequences(const CodePointSet& set);

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_CODE_POINTS_H_
