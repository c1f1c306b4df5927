#include "kernels/hip/attention/attention_heads.h"
#include "kernels/hip/attention/attention_tiles.h"

namespace trine::hip {

Launch F32HeadsLaunch(uint32_t heads, uint32_t groups, const AttentionArgs& args, uint32_t chunks) {
  return HeadsLaunchOf<CacheForm::kF32>(heads, groups, args, chunks);
}

Launch F32TileLaunch(uint32_t groups, const AttentionArgs& args, uint32_t chunks) {
  return TileLaunchOf<CacheForm::kF32>(groups, args, chunks);
}

}  // namespace trine::hip
