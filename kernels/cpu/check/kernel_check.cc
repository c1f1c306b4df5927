// trine-kernel-check [LEVEL...]: compares the kernels of every level this processor can run, or of
// the levels named, with the scalar reference. Needs no library; the same sources built for another
// processor run there, or under an emulator. By hand, for this machine or another:
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

bool Run(const Level& level) {
  const auto begin = std::chrono::steady_clock::now();
  CheckReport report;
  CheckMatrixOps(*level.table, &report);
  CheckFloatOps(*level.table, &report);
  CheckAttention(*level.table, 60, &report);
  CheckMath(*level.table, 9973, &report);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("level %s: %lld cases, %lld mismatches, %.1f s\n", level.name,
              static_cast<long long>(report.cases()), static_cast<long long>(report.mismatches()),
              seconds.count());
  for (const std::string& message : report.messages()) std::printf("  %s\n", message.c_str());
  std::fflush(stdout);
  return report.mismatches() == 0;
}

int RunNamed(int count, char** names) {
  int result = 0;
  for (int i = 0; i < count; ++i) {
    const Level* level = FindLevel(names[i]);
    const std::string why_not = level != nullptr ? WhyNot(*level) : "this build has no such level";
    if (!why_not.empty()) {
      std::fprintf(stderr, "level %s can't be run: %s\n", names[i], why_not.c_str());
      return 2;
    }
    if (!Run(*level)) result = 1;
  }
  return result;
}

int RunAll() {
  int result = 0;
  for (const Level& level : Levels()) {
    if (level.on_request_only) continue;
    const std::string why_not = WhyNot(level);
    if (!why_not.empty()) {
      std::printf("level %s: skipped, %s\n", level.name, why_not.c_str());
      continue;
    }
    if (!Run(level)) result = 1;
  }
  return result;
}

}  // namespace
}  // namespace trine::cpu_kernels

int main(int argc, char** argv) {
  if (argc > 1 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    std::printf(
        "trine-kernel-check [LEVEL...]: compares the kernels of all levels that can be run "
        "here, or of those named, with the scalar reference\n");
    return 0;
  }
  return argc > 1 ? trine::cpu_kernels::RunNamed(argc - 1, argv + 1) : trine::cpu_kernels::RunAll();
}
