#include "detect/cgroup.h"

#include <algorithm>

#include "detect/text.h"

namespace trine::detect {
namespace {

// The deepest hierarchy looked at; systemd and Kubernetes together stay below ten.
constexpr size_t kMaxDepth = 64;

std::vector<CgroupFolder> WithAncestors(const std::string& mount, std::string_view path) {
  std::vector<CgroupFolder> folders{{"/", mount}};
  std::string inside;
  for (std::string_view part : Split(path, '/')) {
    // A process outside its cgroup namespace sees "/../.."; nothing below the mount is meant.
    if (part == "." || part == ".." || folders.size() >= kMaxDepth) break;
    inside += "/" + std::string(part);
    folders.push_back({inside, mount + inside});
  }
  std::reverse(folders.begin(), folders.end());
  return folders;
}

bool HasController(std::string_view list, std::string_view controller) {
  const auto names = Split(list, ',');
  return std::find(names.begin(), names.end(), controller) != names.end();
}

std::optional<double> Quota(std::optional<uint64_t> quota, std::optional<uint64_t> period) {
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

Cgroup FindCgroup(const FileRoot& root, std::string_view controller) {
  Cgroup found;
  const auto text = root.Read("/proc/self/cgroup");
  if (!text) return found;
  for (std::string_view line : Split(*text, '\n')) {
    // "hierarchy:controllers:path"; version 2 is hierarchy 0 with no controllers.
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (HasController(controllers, controller)) {
      std::string mount = "/sys/fs/cgroup/" + std::string(controllers);
      if (root.List(mount).empty()) mount = "/sys/fs/cgroup/" + std::string(controller);
      found.version = 1;
      found.folders = WithAncestors(mount, path);
      return found;
    }
    if (line.substr(0, first) == "0" && controllers.empty()) {
      const bool hybrid = !root.List("/sys/fs/cgroup/unified").empty();
      found.version = 2;
      found.folders = WithAncestors(hybrid ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup", path);
    }
  }
  return found;
}

std::optional<double> ReadCpuQuota(const FileRoot& root) {
  const Cgroup cgroup = FindCgroup(root, "cpu");
  std::optional<double> tightest;
  for (const CgroupFolder& folder : cgroup.folders) {
    std::optional<double> quota;
    if (cgroup.version == 1) {
      // No limit is written as -1, which is not a number to ReadU64.
      quota = Quota(root.ReadU64(folder.files + "/cpu.cfs_quota_us"),
                    root.ReadU64(folder.files + "/cpu.cfs_period_us"));
    } else if (const auto text = root.Read(folder.files + "/cpu.max")) {
      const auto words = Words(*text);  // "max 100000" or "50000 100000".
      if (words.size() == 2) quota = Quota(ParseU64(words[0]), ParseU64(words[1]));
    }
    if (quota && (!tightest || *quota < *tightest)) tightest = quota;
  }
  return tightest;
}

}  // namespace trine::detect
