#include "kernels/hip/attention_tiles.h"

namespace trine::hip {

Launch Q8TileLaunch(uint32_t groups, const AttentionArgs& args, uint32_t chunks) {
  return TileLaunchOf<CacheForm::kQ8>(groups, args, chunks);
}

}  // namespace trine::hip
