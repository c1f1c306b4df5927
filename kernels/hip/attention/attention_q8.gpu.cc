#include "kernels/hip/attention/attention_heads.h"
#include "kernels/hip/attention/attention_tiles.h"

namespace trine::hip {

Launch Q8HeadsLaunch(uint32_t heads, uint32_t groups, const AttentionArgs& args, uint32_t chunks) {
  return HeadsLaunchOf<CacheForm::kQ8>(heads, groups, args, chunks);
}

Launch Q8TileLaunch(uint32_t groups, const AttentionArgs& args, uint32_t chunks) {
  return TileLaunchOf<CacheForm::kQ8>(groups, args, chunks);
}

}  // namespace trine::hip
