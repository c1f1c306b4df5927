// trine-probe: loads plugins in place of the program that wants to know about them. Not meant to be
// called by hand; `trine detect` and `trine plugin check` are.
#include <cstdio>
#include <cstring>

#include "plugins/conformance/check.h"
#include "plugins/probe.h"

int main(int argc, char** argv) {
  if (const int code = trine::ProbeMain(argc, argv); code >= 0) return code;
  if (argc >= 3 && std::strcmp(argv[1], "check") == 0) {
    return trine::conformance::CheckMain(argc - 1, argv + 1);
  }
  std::fprintf(stderr,
               "usage: trine-probe probe PLUGIN OPTIONS | trine-probe check PLUGIN [options]\n");
  return 2;
}
