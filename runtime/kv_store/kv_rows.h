// Rows of a KV cache to and from a lossy form: quant::DequantizeRow and quant::EncodeRow with loops
// that compilers make vectors of, to the same bits.
#ifndef TRINE_RUNTIME_KV_STORE_KV_ROWS_H_
#define TRINE_RUNTIME_KV_STORE_KV_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/quant/block_types.h"
#include "runtime/kv_store/kv_form.h"

namespace trine {

// `values` of f16, bf16 or f32 as f32. False where one is infinite or none.
bool LoadKvValues(quant::Type type, const std::byte* from, int64_t values, float* out);

// A row of a lossy form, decoded, canonical, as f16, bf16 or f32.
void DecodeKvRow(KvForm form, const std::byte* row, int64_t values, quant::Type type,
                 std::byte* to);

}  // namespace trine

#endif  // TRINE_RUNTIME_KV_STORE_KV_ROWS_H_
