#include "kernels/hip/attention_heads.h"

namespace trine::hip {

// Rare, and slow anyway: whatever the groups.
Launch AnyHeadsLaunch(uint32_t heads, const AttentionArgs& args, uint32_t chunks) {
  if (heads == 1) return HeadsLaunchOf<CacheForm::kAny, 1, 4>(args, chunks);
  if (heads == 2) return HeadsLaunchOf<CacheForm::kAny, 2, 4>(args, chunks);
  return HeadsLaunchOf<CacheForm::kAny, 4, 4>(args, chunks);
}

}  // namespace trine::hip
