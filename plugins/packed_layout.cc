#include "plugins/packed_layout.h"

#include <bit>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "trine/sdk/dtype.h"

namespace trine {

absl::StatusOr<PackedLayout> PackedLayout::Create(const trine_tensor& tensor,
                                                  const trine_layout_info& info,
                                                  uint64_t buffer_alignment) {
  const auto wrong = [&](auto... what) {
    return absl::InternalError(absl::StrCat("layout ", absl::Hex(info.layout), ": ", what...));
  };
  PackedLayout p;
  p.info_ = info;
  p.tensor_.dtype = tensor.dtype;
  p.tensor_.rank = tensor.rank;
  for (uint32_t i = 0; i < 4; ++i) p.tensor_.dims[i] = i < tensor.rank ? tensor.dims[i] : 1;
  const int64_t* dims = p.tensor_.dims;
  if (std::any_of(dims, dims + 4, [](int64_t d) { return d <= 0; })) {
    return wrong("a tensor without values, or of unknown size, has no layout");
  }
  if (info.layout == TRINE_LAYOUT_PLAIN) return wrong("the plain layout is not to be listed");
  if (info.flags != 0) return wrong("unknown flags ", info.flags);
  if (info.group_rows == 0 || info.group_rows >> 32 != 0 || info.group_bytes == 0) {
    return wrong("groups of ", info.group_rows, " rows and ", info.group_bytes, " bytes");
  }
  if (!std::has_single_bit(info.alignment) || info.alignment > buffer_alignment) {
    return wrong("an alignment of ", info.alignment, " bytes, where buffers are aligned to ",
                 buffer_alignment);
  }
  p.row_bytes_ = static_cast<uint64_t>(sdk::ValueBytes(tensor.dtype, dims[0]));
  p.matrices_ = static_cast<uint64_t>(dims[2] * dims[3]);
  p.matrix_rows_ = static_cast<uint64_t>(dims[1]);
  p.matrix_groups_ = (p.matrix_rows_ - 1) / info.group_rows + 1;
  // Divides rather than multiplies, because the plugin's numbers may be anything and must not wrap.
  if (info.packed_bytes / info.group_bytes < p.groups()) {
    return wrong(p.groups(), " groups of ", info.group_bytes, " bytes do not fit in ",
                 info.packed_bytes);
  }
  // f32 for weights of one bit would take 32 times the bytes. A number far above that is an error.
  const uint64_t plain_bytes = p.row_bytes_ * p.matrix_rows_ * p.matrices_;
  if (info.packed_bytes / 64 > plain_bytes + (uint64_t{1} << 20)) {
    return wrong(info.packed_bytes, " bytes for a tensor of ", plain_bytes);
  }
  return p;
}

}  // namespace trine
