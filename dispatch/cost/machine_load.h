// Says what else a machine did while something was measured on it. Other work makes measured times
// too long, and uneven.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "detect/file_root.h"

namespace trine {

// Times since some fixed moment, in seconds.
struct CpuTimes {
  double wall_s = 0;
  double own_s = 0;      // of all threads of this process
  double all_s = 0;      // of all processes and the kernel, on the processors that count
  double stolen_s = 0;   // that a hypervisor gave to other machines
  double preempted = 0;  // how often a thread of this process lost its processor to another thread
  int processors = 0;    // that count; 0: `all_s` and `stolen_s` are not known
};

// Reads the text of /proc/stat: `all_s`, `stolen_s` and `processors`. Only the processors in `cpus`
// count; if it is empty, all do. `ticks`: of the text's unit in a second.
CpuTimes ParseCpuTimes(std::string_view stat, const std::vector<int>& cpus, double ticks);

// Reads the times of this moment. `cpus`: the processors that this process may use.
CpuTimes ReadCpuTimes(const detect::FileRoot& root, const std::vector<int>& cpus);

// Says what kept the machine busy between two moments, such as "other processes used 1.4 of 2
// processors". Returns "" if the machine was idle but for this process.
std::string DescribeLoad(const CpuTimes& before, const CpuTimes& after);

}  // namespace trine
