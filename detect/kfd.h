// AMD's compute driver (KFD) describes its GPUs in a topology of its own; it alone names the
// compiler target before any ROCm library is loaded.

#ifndef TRINE_DETECT_KFD_H_
#define TRINE_DETECT_KFD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "detect/file_root.h"
#include "detect/gpu.h"

namespace trine::detect {

struct KfdNode {
  uint32_t domain = 0;
  uint32_t location_id = 0;  // bus << 8 | device << 3 | function.
  std::string gfx_target;    // "gfx90a".
};

// The GPU nodes; those without a target (the processors) are left out.
std::vector<KfdNode> ReadKfdNodes(const FileRoot& root);

// "gfx1100" for 110000, "gfx90a" for 90010: major, minor and stepping in two decimal digits each,
// written as one decimal and two hexadecimal digits. "" for a number that is none.
std::string GfxTargetName(uint64_t gfx_target_version);

// "" when no node is at that address.
std::string GfxTargetAt(const std::vector<KfdNode>& nodes, const PciAddress& address);

}  // namespace trine::detect

#endif  // TRINE_DETECT_KFD_H_
