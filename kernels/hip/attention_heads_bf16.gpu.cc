#include "kernels/hip/attention_heads.h"

namespace trine::hip {

Launch Bf16HeadsLaunch(uint32_t heads, uint32_t groups, const AttentionArgs& args,
                       uint32_t chunks) {
  return HeadsLaunchOf<CacheForm::kBf16>(heads, groups, args, chunks);
}

}  // namespace trine::hip
