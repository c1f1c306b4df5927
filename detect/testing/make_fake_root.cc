//   make-fake-root NAME DIR   writes a made-up machine into DIR
//   make-fake-root --list     prints "NAME TIER" for each machine

#include <cstdio>
#include <string_view>

#include "detect/testing/scenarios.h"

int main(int argc, char** argv) {
  using trine::detect::testing::FakeRoot;
  using trine::detect::testing::FindScenario;
  using trine::detect::testing::Scenario;
  using trine::detect::testing::Scenarios;
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const Scenario& scenario : Scenarios()) {
      std::printf("%s %s\n", scenario.name, scenario.tier);
    }
    return 0;
  }
  if (argc != 3) {
    std::fprintf(stderr, "usage: make-fake-root NAME DIR | --list\n");
    return 2;
  }
  const Scenario* scenario = FindScenario(argv[1]);
  if (scenario == nullptr) {
    std::fprintf(stderr, "make-fake-root: no machine is called '%s'; see --list\n", argv[1]);
    return 2;
  }
  FakeRoot root(argv[2]);
  scenario->build(&root);
  return 0;
}
