#include "detect/kfd.h"

#include <cstdio>

#include "detect/text.h"

namespace trine::detect {

std::string GfxTargetName(uint64_t gfx_target_version) {
  const uint64_t major = gfx_target_version / 10000;
  const uint64_t minor = gfx_target_version / 100 % 100;
  const uint64_t stepping = gfx_target_version % 100;
  if (major == 0 || major > 99 || minor > 15 || stepping > 15) return "";
  char text[16];
  std::snprintf(text, sizeof(text), "gfx%u%x%x", static_cast<unsigned>(major),
                static_cast<unsigned>(minor), static_cast<unsigned>(stepping));
  return text;
}

std::vector<KfdNode> ReadKfdNodes(const FileRoot& root) {
  constexpr char kFolder[] = "/sys/class/kfd/kfd/topology/nodes";
  std::vector<KfdNode> nodes;
  for (const std::string& name : root.List(kFolder)) {
    const auto text = root.Read(std::string(kFolder) + "/" + name + "/properties");
    if (!text) continue;
    const std::string target = GfxTargetName(FindNumber(*text, "gfx_target_version").value_or(0));
    const auto location = FindNumber(*text, "location_id");
    const uint64_t domain = FindNumber(*text, "domain").value_or(0);
    if (target.empty() || !location || *location > 0xffff || domain > 0xffffffffu) continue;
    nodes.push_back({static_cast<uint32_t>(domain), static_cast<uint32_t>(*location), target});
  }
  return nodes;
}

std::string GfxTargetAt(const std::vector<KfdNode>& nodes, const PciAddress& address) {
  const uint32_t location = address.bus << 8 | address.device << 3 | address.function;
  for (const KfdNode& node : nodes) {
    if (node.domain == address.domain && node.location_id == location) return node.gfx_target;
  }
  return "";
}

}  // namespace trine::detect
