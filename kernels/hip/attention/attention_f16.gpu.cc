#include "kernels/hip/attention/attention_rows.h"

namespace trine::hip {

template Launch RowsLaunch<CacheForm::kF16>(bool, uint32_t, uint32_t, const AttentionArgs&,
                                            uint32_t);

}  // namespace trine::hip
