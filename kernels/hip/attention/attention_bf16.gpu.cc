#include "kernels/hip/attention/attention_heads.h"
#include "kernels/hip/attention/attention_tiles.h"

namespace trine::hip {

Launch Bf16HeadsLaunch(uint32_t heads, uint32_t groups, const AttentionArgs& args,
                       uint32_t chunks) {
  return HeadsLaunchOf<CacheForm::kBf16>(heads, groups, args, chunks);
}

Launch Bf16TileLaunch(uint32_t groups, const AttentionArgs& args, uint32_t chunks) {
  return TileLaunchOf<CacheForm::kBf16>(groups, args, chunks);
}

}  // namespace trine::hip
