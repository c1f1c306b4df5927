#include "dispatch/cost/machine_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "detect/text.h"

namespace trine {
namespace {

// Less than this goes on beside everything else, on any machine.
constexpr double kIdleOthers = 0.2, kIdleOthersPart = 0.05;   // processors, and part of them
constexpr double kIdleStolen = 0.05, kIdleStolenPart = 0.02;  // the same
constexpr double kIdlePreempted = 100;                        // times in a second of own time

// The columns of a processor's line in /proc/stat.
enum Column { kUser, kNice, kSystem, kIdle, kIoWait, kIrq, kSoftIrq, kSteal };

double ColumnValue(const std::vector<std::string_view>& words, Column column) {
  const auto i = static_cast<size_t>(column) + 1;  // the first word is the processor's name
  if (i >= words.size()) return 0;                 // old kernels have fewer columns
  return static_cast<double>(detect::ParseU64(words[i]).value_or(0));
}

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// A sandbox may have a /proc/stat that counts nothing: then it misses even this process.
bool CountsThisProcess(double own_s, double all_s) { return all_s >= 0.7 * own_s - 0.1; }

}  // namespace

CpuTimes ParseCpuTimes(std::string_view stat, const std::vector<int>& cpus, double ticks) {
  CpuTimes times;
  for (const std::string_view line : detect::Split(stat, '\n')) {
    const std::vector<std::string_view> words = detect::Words(line);
    if (words.empty() || words[0].substr(0, 3) != "cpu") continue;
    const auto number = detect::ParseU64(words[0].substr(3));
    if (!number) continue;  // the line of all processors together
    const bool counts = cpus.empty() || std::find(cpus.begin(), cpus.end(),
                                                  static_cast<int>(*number)) != cpus.end();
    if (!counts) continue;
    ++times.processors;
    for (const Column column : {kUser, kNice, kSystem, kIrq, kSoftIrq}) {
      times.all_s += ColumnValue(words, column) / ticks;
    }
    times.stolen_s += ColumnValue(words, kSteal) / ticks;
  }
  return times;
}

CpuTimes ReadCpuTimes(const detect::FileRoot& root, const std::vector<int>& cpus) {
  constexpr size_t kLargestStat = size_t{4} << 20;  // it has a number for each interrupt
  CpuTimes times;
  const long ticks = sysconf(_SC_CLK_TCK);
  if (const auto stat = root.Read("/proc/stat", kLargestStat); stat && ticks > 0) {
    times = ParseCpuTimes(*stat, cpus, static_cast<double>(ticks));
  }
  rusage use{};
  if (getrusage(RUSAGE_SELF, &use) == 0) {
    times.own_s = SecondsOf(use.ru_utime) + SecondsOf(use.ru_stime);
    times.preempted = static_cast<double>(use.ru_nivcsw);
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  times.wall_s = std::chrono::duration<double>(now).count();
  return times;
}

std::string DescribeLoad(const CpuTimes& before, const CpuTimes& after) {
  const double wall = after.wall_s - before.wall_s, own = after.own_s - before.own_s;
  if (wall <= 0) return "";
  std::vector<std::string> seen;
  const double n = after.processors, all = after.all_s - before.all_s;
  if (n > 0 && before.processors == after.processors && CountsThisProcess(own, all)) {
    const double others = (all - own) / wall;
    const double stolen = (after.stolen_s - before.stolen_s) / wall;
    if (others >= std::max(kIdleOthers, kIdleOthersPart * n)) {
      seen.push_back(
          absl::StrFormat("other processes used %.1f of %d processors", others, after.processors));
    }
    if (stolen >= std::max(kIdleStolen, kIdleStolenPart * n)) {
      seen.push_back(absl::StrFormat("other virtual machines took %.1f of %d processors", stolen,
                                     after.processors));
    }
  } else if (own > 0) {
    const double rate = (after.preempted - before.preempted) / own;
    if (rate >= kIdlePreempted) {
      seen.push_back(
          absl::StrFormat("other work took the processor away %.0f times a second", rate));
    }
  }
  return absl::StrJoin(seen, " and ");
}

}  // namespace trine
