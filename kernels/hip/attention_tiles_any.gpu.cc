#include "kernels/hip/attention_tiles.h"

namespace trine::hip {

// Rare, and slow anyway: whatever the groups.
Launch AnyTileLaunch(const AttentionArgs& args, uint32_t chunks) {
  return TileLaunchOf<CacheForm::kAny, kMaxTileWidth / 32>(args, chunks);
}

}  // namespace trine::hip
