// make_layout_source HEADER OUTPUT: writes the table of layout.h for a header.
#include <fstream>
#include <iostream>
#include <sstream>

#include "tests/abi/header_text.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream in(argv[1]);
  std::ostringstream text;
  text << in.rdbuf();
  std::ofstream out(argv[2]);
  // Skip what is not layout: an attribute, how this file is compiled, and the version.
  out << trine::abi::LayoutSource(trine::abi::ParseHeader(
      text.str(), {"TRINE_EXPORT", "TRINE_SANITIZER_HERE", "TRINE_NUMERICS_VERSION"}));
  if (!in || !out.flush()) {
    std::cerr << "make_layout_source: can't read " << argv[1] << " or write " << argv[2] << '\n';
    return 1;
  }
  return 0;
}
