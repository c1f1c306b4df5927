#include "kernels/hip/attention/attention_heads.h"
#include "kernels/hip/attention/attention_tiles.h"

namespace trine::hip {

// Uses one kernel for all numbers of groups, because this form is rare, and slow anyway.
Launch AnyHeadsLaunch(uint32_t heads, const AttentionArgs& args, uint32_t chunks) {
  if (heads == 1) return HeadsLaunchOf<CacheForm::kAny, 1, 4>(args, chunks);
  if (heads == 2) return HeadsLaunchOf<CacheForm::kAny, 2, 4>(args, chunks);
  return HeadsLaunchOf<CacheForm::kAny, 4, 4>(args, chunks);
}

Launch AnyTileLaunch(const AttentionArgs& args, uint32_t chunks) {
  return TileLaunchOf<CacheForm::kAny, kMaxTileWidth / 32>(args, chunks);
}

}  // namespace trine::hip
