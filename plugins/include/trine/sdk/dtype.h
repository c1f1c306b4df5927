// Sizes of the ABI's data types.
#ifndef TRINE_SDK_DTYPE_H_
#define TRINE_SDK_DTYPE_H_

#include <limits>

#include "trine/backend.h"

namespace trine::sdk {

// The name and the sizes of a data type.
struct Dtype {
  const char* name;  // as in GGUF
  uint32_t block;    // values per block
  uint32_t block_bytes;
};

// Returns null for a type that this header does not know.
inline const Dtype* FindDtype(uint32_t dtype) {
  struct Row {
    uint32_t id;
    Dtype info;
  };
  static constexpr Row kRows[] = {
      {TRINE_DTYPE_F32, {"f32", 1, 4}},           {TRINE_DTYPE_F16, {"f16", 1, 2}},
      {TRINE_DTYPE_BF16, {"bf16", 1, 2}},         {TRINE_DTYPE_I32, {"i32", 1, 4}},
      {TRINE_DTYPE_Q4_0, {"q4_0", 32, 18}},       {TRINE_DTYPE_Q4_1, {"q4_1", 32, 20}},
      {TRINE_DTYPE_Q5_0, {"q5_0", 32, 22}},       {TRINE_DTYPE_Q5_1, {"q5_1", 32, 24}},
      {TRINE_DTYPE_Q8_0, {"q8_0", 32, 34}},       {TRINE_DTYPE_Q8_KV, {"q8_kv", 32, 36}},
      {TRINE_DTYPE_Q2_K, {"q2_K", 256, 84}},      {TRINE_DTYPE_Q3_K, {"q3_K", 256, 110}},
      {TRINE_DTYPE_Q4_K, {"q4_K", 256, 144}},     {TRINE_DTYPE_Q5_K, {"q5_K", 256, 176}},
      {TRINE_DTYPE_Q6_K, {"q6_K", 256, 210}},     {TRINE_DTYPE_IQ4_NL, {"iq4_nl", 32, 18}},
      {TRINE_DTYPE_IQ4_XS, {"iq4_xs", 256, 136}}, {TRINE_DTYPE_TQ1_0, {"tq1_0", 256, 54}},
      {TRINE_DTYPE_TQ2_0, {"tq2_0", 256, 66}},    {TRINE_DTYPE_MXFP4, {"mxfp4", 32, 17}},
  };
  for (const Row& row : kRows) {
    if (row.id == dtype) return &row.info;
  }
  return nullptr;
}

inline const char* DtypeName(uint32_t dtype) {
  const Dtype* info = FindDtype(dtype);
  return info != nullptr ? info->name : "unknown type";
}

// Returns the bytes of `values` contiguous values. Returns -1 if they fill no whole number of
// blocks, or are too many.
inline int64_t ValueBytes(uint32_t dtype, int64_t values) {
  const Dtype* info = FindDtype(dtype);
  if (info == nullptr || values < 0 || values % info->block != 0) return -1;
  const int64_t blocks = values / info->block;
  if (blocks > std::numeric_limits<int64_t>::max() / info->block_bytes) return -1;
  return blocks * info->block_bytes;
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_DTYPE_H_
