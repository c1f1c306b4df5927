// The binary layout of trine/backend.h as the compiler sees it, and its comparison with a golden
// file: one line per constant, struct and member.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace trine::abi {

struct LayoutEntry {
  enum class Kind { kConstant, kStruct, kMember };
  Kind kind;
  const char* name;    // name of the constant or struct
  const char* member;  // "" unless it is a member
  long long value;     // value of a constant, offset of a member
  size_t size;         // of a struct or member
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

// Generated from the header's text (header_text.h). A struct's members follow it.
extern const LayoutEntry kLayout[];
extern const size_t kLayoutCount;

// Returns "const TRINE_OK 0", "struct trine_span 24", "member trine_span.offset 8 8".
std::string Line(const LayoutEntry& entry);

// Checks that all members of each struct are listed. Returns the first gap, overlap, or end that is
// not the struct's; "" when there is none.
std::string FindGap(const std::vector<LayoutEntry>& layout);

// Differences between a golden file of the same ABI version and the current layout.
struct Difference {
  std::vector<std::string> lost;  // golden lines that don't hold
  std::vector<std::string> added;
};
Difference Compare(const std::vector<std::string>& golden, const std::vector<std::string>& now);

// Returns golden lines of an older version of the same major that don't hold. Structs may have
// grown: only a smaller size counts.
std::vector<std::string> BrokenPromises(const std::vector<std::string>& older,
                                        const std::vector<std::string>& now);

// Returns the lines of a golden file without comments and blank lines.
std::vector<std::string> GoldenLines(const std::string& text);

}  // namespace trine::abi
