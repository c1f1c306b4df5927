// Views that lie close together, as fewer dimensions: what a shader needs no divisions for.
#ifndef TRINE_KERNELS_VULKAN_FLATTEN_H_
#define TRINE_KERNELS_VULKAN_FLATTEN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/vulkan/dispatch.h"

namespace trine::vulkan {

// A view that is walked along the dims of another: `step` is its stride along the innermost one, in
// bytes.
struct WalkedView {
  TensorView* view;
  int64_t step;
};

// Joins dimensions of `dims` wherever all views go on from one to the next without a gap. The
// strides of the views change along; their own dims are not looked at.
inline void Flatten(std::array<int64_t, 4>* dims, const std::vector<WalkedView>& walked) {
  int last = 0;  // of the dimensions that are kept
  for (int next = 1; next < 4; ++next) {
    const int64_t n = (*dims)[next];
    if (n == 1) continue;
    (*dims)[next] = 1;
    bool joins = true;
    for (const WalkedView& w : walked) {
      const int64_t step = last == 0 ? w.step : w.view->strides[last];
      joins &= w.view->strides[next] == step * (*dims)[last];
    }
    if (joins) {
      (*dims)[last] *= n;
      continue;
    }
    ++last;
    (*dims)[last] = n;
    for (const WalkedView& w : walked) w.view->strides[last] = w.view->strides[next];
  }
}

}  // namespace trine::vulkan

#endif  // TRINE_KERNELS_VULKAN_FLATTEN_H_
