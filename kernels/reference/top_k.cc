#include "kernels/reference/ops.h"
#include "kernels/reference/selection.h"

namespace trine::reference {

void TopK(const View& logits, const View& ids, const View& values, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* row = F32Row(logits, r);
    Ranked ranked = {};
    for (int64_t place = 0; place < ids.dims[0]; ++place) {
      ranked = NextRanked(
          logits.dims[0], [row](int64_t id) { return row[id]; }, ranked);
      I32Row(ids, r)[place] = static_cast<int32_t>(ranked.id);
      F32Row(values, r)[place] = ranked.score;
    }
  }
}

}  // namespace trine::reference
