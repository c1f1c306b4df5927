// trine-probe without the conformance kit.
#include <cstdio>

#include "plugins/probe.h"

int main(int argc, char** argv) {
  if (const int code = trine::ProbeMain(argc, argv); code >= 0) return code;
  std::fprintf(stderr, "usage: trine-probe probe PLUGIN OPTIONS\n");
  return 2;
}
