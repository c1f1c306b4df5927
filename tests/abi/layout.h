// The binary layout of trine/backend.h as the compiler sees it, and its comparison with a golden
// file: one line per constant, struct and member.
#ifndef TRINE_TESTS_ABI_LAYOUT_H_
#define TRINE_TESTS_ABI_LAYOUT_H_

#include <cstddef>
#include <string>
#include <vector>

namespace trine::abi {

struct LayoutEntry {
  enum class Kind { kConstant, kStruct, kMember };
  Kind kind;
  const char* name;    // of the constant or struct
  const char* member;  // "" but for members
  long long value;     // constant; member: offset
  size_t size;         // struct, member
};

constexpr LayoutEntry Constant(const char* name, long long value) {
  return {LayoutEntry::Kind::kConstant, name, "", value, 0};
}
constexpr LayoutEntry Struct(const char* name, size_t size) {
  return {LayoutEntry::Kind::kStruct, name, "", 0, size};
}
constexpr LayoutEntry Member(const char* name, const char* member, size_t offset, size_t size) {
  return {LayoutEntry::Kind::kMember, name, member, static_cast<long long>(offset), size};
}

// Generated from the header's text (header_text.h), a struct's members following it.
extern const LayoutEntry kLayout[];
extern const size_t kLayoutCount;

// "const TRINE_OK 0", "struct trine_span 24", "member trine_span.offset 8 8".
std::string Line(const LayoutEntry& entry);

// What breaks the promise that a struct's members are all listed: a gap, an overlap, an end that is
// not the struct's. "" when nothing does.
std::string FindGap(const std::vector<LayoutEntry>& layout);

// Differences between a golden file of the same ABI version and the layout now.
struct Difference {
  std::vector<std::string> lost;  // golden lines that no longer hold
  std::vector<std::string> added;
};
Difference Compare(const std::vector<std::string>& golden, const std::vector<std::string>& now);

// Golden lines of an older version of the same major that no longer hold. Structs may have grown:
// only a smaller size counts.
std::vector<std::string> BrokenPromises(const std::vector<std::string>& older,
                                        const std::vector<std::string>& now);

// The lines of a golden file: comments and blank lines left out.
std::vector<std::string> GoldenLines(const std::string& text);

}  // namespace trine::abi

#endif  // TRINE_TESTS_ABI_LAYOUT_H_
