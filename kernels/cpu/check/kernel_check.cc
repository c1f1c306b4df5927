// trine-kernel-check [--some] [LEVEL...]: compares the kernels of every level this processor can
// run, or of the levels named, with the scalar reference. With --some it compares fewer cases.
// Needs no library; the same sources built for another processor run there, or under an emulator.
// By hand, for this machine or another:
//
//   kernels/cpu/check/build_kernel_check.sh g++ ./trine-kernel-check && ./trine-kernel-check
//   kernels/cpu/check/build_kernel_check.sh x86_64-linux-gnu-g++ ./check-x86
//   qemu-x86_64 -cpu max ./check-x86
//
// Exits with 0 when all bits were equal, 1 when some were not, 2 when a level was named that can't
// be run.

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include "kernels/cpu/check/check.h"
#include "kernels/cpu/levels/host_features.h"
#include "kernels/cpu/levels/levels.h"

namespace trine::cpu_kernels {
namespace {

// Returns why the level can't run here, or "" when it can.
std::string WhyNot(const Level& level) {
  if (level.table == nullptr) return "it was left out of this program";
  for (const char* feature : level.required) {
    if (!HostHas(feature)) return std::string("the processor has no ") + feature;
  }
  return "";
}

bool Run(const Level& level, Extent extent) {
  const auto begin = std::chrono::steady_clock::now();
  CheckReport report;
  CheckActivations(*level.table, &report);
  CheckProducts(*level.table, extent, &report);
  constexpr int64_t kLeastCases = 10'000;  // of products: the other checks have millions
  const bool enough = report.cases() >= kLeastCases;
  CheckFloatOps(*level.table, &report);
  CheckAttention(*level.table, extent, extent == Extent::kAll ? 60 : 15, &report);
  CheckMath(*level.table, extent == Extent::kAll ? 9973 : 99'991, &report);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("level %s: %lld cases, %lld mismatches, %.1f s\n", level.name,
              static_cast<long long>(report.cases()), static_cast<long long>(report.mismatches()),
              seconds.count());
  for (const std::string& message : report.messages()) std::printf("  %s\n", message.c_str());
  std::fflush(stdout);
  if (!enough)
    std::printf("  fewer than %lld products were compared\n", static_cast<long long>(kLeastCases));
  return report.mismatches() == 0 && enough;
}

int RunNamed(int count, char** names, Extent extent) {
  int result = 0;
  for (int i = 0; i < count; ++i) {
    const Level* level = FindLevel(names[i]);
    const std::string why_not = level != nullptr ? WhyNot(*level) : "this build has no such level";
    if (!why_not.empty()) {
      std::fprintf(stderr, "level %s can't be run: %s\n", names[i], why_not.c_str());
      return 2;
    }
    if (!Run(*level, extent)) result = 1;
  }
  return result;
}

int RunAll(Extent extent) {
  int result = 0;
  for (const Level& level : Levels()) {
    if (level.on_request_only) continue;
    const std::string why_not = WhyNot(level);
    if (!why_not.empty()) {
      std::printf("level %s: skipped, %s\n", level.name, why_not.c_str());
      continue;
    }
    if (!Run(level, extent)) result = 1;
  }
  return result;
}

}  // namespace
}  // namespace trine::cpu_kernels

int main(int argc, char** argv) {
  using trine::cpu_kernels::Extent;
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "-h") {
    std::printf(
        "trine-kernel-check [--some] [LEVEL...]: compares the kernels of all levels that can be "
        "run "
        "here, or of those named, with the scalar reference; with --some, in fewer cases\n");
    return 0;
  }
  const bool some = first == "--some";
  const Extent extent = some ? Extent::kSome : Extent::kAll;
  const int skipped = some ? 2 : 1;
  return argc > skipped ? trine::cpu_kernels::RunNamed(argc - skipped, argv + skipped, extent)
                        : trine::cpu_kernels::RunAll(extent);
}
