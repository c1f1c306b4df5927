// trine-probe without the conformance kit.
#include <cstdio>
#include <cstring>

#include "plugins/probe.h"

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "probe") == 0) return trine::ProbeMain(argv[2], argv[3]);
  std::fprintf(stderr, "usage: trine-probe probe PLUGIN OPTIONS\n");
  return 2;
}
