// A weight in a layout of a device's own: where its groups lie, by the rules of
// docs/plugin-abi.md, "Layouts". What a plugin says is held against those rules first.
#ifndef TRINE_PLUGINS_PACKED_LAYOUT_H_
#define TRINE_PLUGINS_PACKED_LAYOUT_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "trine/backend.h"

namespace trine {

class PackedLayout {
 public:
  // `buffer_alignment`: how the device's buffers start. INTERNAL, with the number that can't be.
  static absl::StatusOr<PackedLayout> Create(const trine_tensor& tensor,
                                             const trine_layout_info& info,
                                             uint64_t buffer_alignment);

  uint64_t id() const { return info_.layout; }
  uint64_t packed_bytes() const { return info_.packed_bytes; }
  uint64_t group_rows() const { return info_.group_rows; }
  uint64_t group_bytes() const { return info_.group_bytes; }
  uint64_t groups() const { return matrices_ * matrix_groups_; }
  uint64_t row_bytes() const { return row_bytes_; }  // of the plain tensor
  // Rows of a group, counted over all matrices. The last group of a matrix may have fewer.
  uint64_t RowBegin(uint64_t group) const {
    return group / matrix_groups_ * matrix_rows_ + group % matrix_groups_ * info_.group_rows;
  }
  uint64_t RowEnd(uint64_t group) const {
    const uint64_t within = (group % matrix_groups_ + 1) * info_.group_rows;
    return group / matrix_groups_ * matrix_rows_ + std::min(matrix_rows_, within);
  }
  // The plain tensor, all dimensions known, as layout_convert wants it.
  const trine_tensor& tensor() const { return tensor_; }

 private:
  PackedLayout() = default;

  trine_tensor tensor_{};
  trine_layout_info info_{};
  uint64_t matrices_ = 1, matrix_rows_ = 0, matrix_groups_ = 0, row_bytes_ = 0;
};

}  // namespace trine

#endif  // TRINE_PLUGINS_PACKED_LAYOUT_H_
