// Reads what a C header declares from its text, so that a test of the header's layout can't miss a
// member, an enumerator or a constant that is added.
#pragma once

#include <string>
#include <vector>

namespace trine::abi {

struct StructText {
  std::string name;
  std::vector<std::string> members;
};

struct HeaderText {
  std::vector<std::string> constants;  // enumerators and object-like macros with a value
  std::vector<StructText> structs;     // structs with a body
};

// Parses the subset of C that trine/backend.h keeps to: `enum { A = 1, ... };`, `typedef struct
// name { members } name;` with one declarator per member, `#define NAME value`. Leaves out the
// macros in `skip`. A member that it misses shows as a gap between members (layout_golden_test.cc).
HeaderText ParseHeader(const std::string& text, const std::vector<std::string>& skip);

// Returns a C++ source of `const LayoutEntry kLayout[]`, with sizes and offsets from the compiler.
std::string LayoutSource(const HeaderText& header);

}  // namespace trine::abi
