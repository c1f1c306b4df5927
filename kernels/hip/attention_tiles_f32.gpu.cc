#include "kernels/hip/attention_tiles.h"

namespace trine::hip {

Launch F32TileLaunch(uint32_t groups, const AttentionArgs& args, uint32_t chunks) {
  return TileLaunchOf<CacheForm::kF32>(groups, args, chunks);
}

}  // namespace trine::hip
