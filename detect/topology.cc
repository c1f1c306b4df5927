#include "detect/topology.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace trine::detect {

const char* CacheTypeName(CacheType type) {
  switch (type) {
    case CacheType::kData:
      return "data";
    case CacheType::kInstruction:
      return "instruction";
    case CacheType::kUnified:
      break;
  }
  return "unified";
}

void CacheCollector::Add(const CacheInfo& one) {
  for (CacheInfo& known : caches_) {
    if (std::tie(known.level, known.type, known.size_bytes, known.line_bytes,
                 known.shared_by_threads) ==
        std::tie(one.level, one.type, one.size_bytes, one.line_bytes, one.shared_by_threads)) {
      ++known.instances;
      return;
    }
  }
  caches_.push_back(one);
  caches_.back().instances = 1;
}

std::vector<CacheInfo> CacheCollector::Take() {
  std::sort(caches_.begin(), caches_.end(), [](const CacheInfo& a, const CacheInfo& b) {
    return std::tie(a.level, a.type, b.size_bytes, a.shared_by_threads, a.line_bytes) <
           std::tie(b.level, b.type, a.size_bytes, b.shared_by_threads, b.line_bytes);
  });
  return std::exchange(caches_, {});
}

}  // namespace trine::detect
