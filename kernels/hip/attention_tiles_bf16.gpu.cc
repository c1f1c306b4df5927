#include "kernels/hip/attention_tiles.h"

namespace trine::hip {

Launch Bf16TileLaunch(uint32_t groups, const AttentionArgs& args, uint32_t chunks) {
  return TileLaunchOf<CacheForm::kBf16>(groups, args, chunks);
}

}  // namespace trine::hip
