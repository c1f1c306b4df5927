// What a C header declares, read from its text: so that a test of the header's layout can't forget
// a member, an enumerator or a constant that somebody adds.
#ifndef TRINE_TESTS_ABI_HEADER_TEXT_H_
#define TRINE_TESTS_ABI_HEADER_TEXT_H_

#include <string>
#include <vector>

namespace trine::abi {

struct StructText {
  std::string name;
  std::vector<std::string> members;
};

struct HeaderText {
  std::vector<std::string> constants;  // enumerators and object-like macros with a value
  std::vector<StructText> structs;     // those with a body
};

// Understands the subset of C that trine/backend.h keeps to: `enum { A = 1, ... };`, `typedef
// struct name { members } name;` with one declarator per member, `#define NAME value`. Macros named
// in `skip` are left out. What it overlooks shows as a gap between members (layout_golden_test.cc).
HeaderText ParseHeader(const std::string& text, const std::vector<std::string>& skip);

// A C++ source of `const LayoutEntry kLayout[]`, which the compiler fills with sizes and offsets.
std::string LayoutSource(const HeaderText& header);

}  // namespace trine::abi

#endif  // TRINE_TESTS_ABI_HEADER_TEXT_H_
