// Where the limits of the control group this process is in are written, for versions 1 and 2.
//
// A limit at any ancestor holds too, so callers look at every folder. Inside a container the path
// in /proc/self/cgroup may be the host's and not exist here; the mounted root is then the one that
// counts, and it is always last in the list.

#ifndef TRINE_DETECT_CGROUP_H_
#define TRINE_DETECT_CGROUP_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detect/file_root.h"

namespace trine::detect {

struct CgroupFolder {
  std::string path;   // "/user.slice", "/" for the mounted root.
  std::string files;  // Where its files are: "/sys/fs/cgroup/user.slice".
};

struct Cgroup {
  int version = 0;                    // 1 or 2; 0 when there is none.
  std::vector<CgroupFolder> folders;  // This process's own first, then its ancestors.
};

// `controller` is "memory" or "cpu". A version-1 hierarchy for it wins over version 2, as in the
// kernel: a controller is in one or the other.
Cgroup FindCgroup(const FileRoot& root, std::string_view controller);

// Processors' worth of time allowed by the cpu controller: the tightest of all ancestors.
std::optional<double> ReadCpuQuota(const FileRoot& root);

}  // namespace trine::detect

#endif  // TRINE_DETECT_CGROUP_H_
