// Describes a packed weight: where its groups lie, by the rules of docs/plugin-abi.md, "Layouts".
// Checks the plugin's numbers against those rules.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "trine/backend.h"

namespace trine {

class PackedLayout {
 public:
  // Checks `info`. Returns INTERNAL, naming the impossible number, if it breaks the rules.
  // `buffer_alignment` is the alignment of the device's buffers.
  static absl::StatusOr<PackedLayout> Create(const trine_tensor& tensor,
                                             const trine_layout_info& info,
                                             uint64_t buffer_alignment);

  uint64_t id() const { return info_.layout; }
  uint64_t packed_bytes() const { return info_.packed_bytes; }
  uint64_t group_rows() const { return info_.group_rows; }
  uint64_t group_bytes() const { return info_.group_bytes; }
  uint64_t groups() const { return matrices_ * matrix_groups_; }
  uint64_t row_bytes() const { return row_bytes_; }  // bytes of a row of the plain tensor
  // RowBegin returns the first row of a group; RowEnd returns the row after its last one. Rows are
  // counted over all matrices. The last group of a matrix may have fewer rows.
  uint64_t RowBegin(uint64_t group) const {
    return group / matrix_groups_ * matrix_rows_ + group % matrix_groups_ * info_.group_rows;
  }
  uint64_t RowEnd(uint64_t group) const {
    const uint64_t within = (group % matrix_groups_ + 1) * info_.group_rows;
    return group / matrix_groups_ * matrix_rows_ + std::min(matrix_rows_, within);
  }
  // Returns the plain tensor with all dimensions known, as layout_convert expects it.
  const trine_tensor& tensor() const { return tensor_; }

 private:
  PackedLayout() = default;

  trine_tensor tensor_{};
  trine_layout_info info_{};
  uint64_t matrices_ = 1, matrix_rows_ = 0, matrix_groups_ = 0, row_bytes_ = 0;
};

}  // namespace trine
