// Defines the launch of attention's rows. Each form of cache has a source that instantiates it,
// because device compilers take long.
#pragma once

#include "kernels/hip/attention/attention_heads.h"
#include "kernels/hip/attention/attention_tiles.h"

namespace trine::hip {

template <CacheForm kForm>
Launch RowsLaunch(bool tiles, uint32_t heads, uint32_t groups, const AttentionArgs& args,
                  uint32_t chunks) {
  if constexpr (kForm != CacheForm::kAny) {
    return tiles ? TileLaunchOf<kForm>(groups, args, chunks)
                 : HeadsLaunchOf<kForm>(heads, groups, args, chunks);
  } else {
    // Uses one kernel for all numbers of groups, because this form is rare, and slow anyway.
    if (tiles) return TileLaunchOf<kForm, kMaxTileWidth / 32>(args, chunks);
    if (heads == 1) return HeadsLaunchOf<kForm, 1, 4>(args, chunks);
    if (heads == 2) return HeadsLaunchOf<kForm, 2, 4>(args, chunks);
    return HeadsLaunchOf<kForm, 4, 4>(args, chunks);
  }
}

}  // namespace trine::hip
