// A tensor in a layout of the device's own: where its groups lie, and that packing keeps the rules.
#ifndef TRINE_PLUGINS_CONFORMANCE_PACKING_H_
#define TRINE_PLUGINS_CONFORMANCE_PACKING_H_

#include <algorithm>
#include <string>

#include "plugins/conformance/graph_spec.h"
#include "plugins/conformance/session.h"

namespace trine::conformance {

// One tensor in one of its layouts. Each matrix is grouped by itself; a cache is one matrix whose
// rows are its blocks.
class Packing {
 public:
  Packing(Session& s, const GraphSpec& graph, uint32_t tensor, const trine_layout_info& info);

  struct Rows {
    uint64_t begin, end;
  };
  uint64_t rows() const { return matrices_ * matrix_rows_; }
  uint64_t groups() const { return matrices_ * MatrixGroups(); }
  Rows Group(uint64_t g) const {
    const uint64_t first = g / MatrixGroups() * matrix_rows_;
    const uint64_t begin = g % MatrixGroups() * info_.group_rows;
    return {first + begin, first + std::min(matrix_rows_, begin + info_.group_rows)};
  }
  bool is_cache() const { return is_cache_; }
  uint32_t slot() const { return tensor_.slot; }
  const trine_layout_info& info() const { return info_; }
  const std::string& what() const { return what_; }

  void CheckInfo(Trial& trial) const;
  // Packs in several ways that must all come out alike. Empty on failure.
  Bytes Pack(Trial& trial, const Bytes& plain) const;
  void CheckUnpack(Trial& trial, const Bytes& plain, const Bytes& packed) const;
  Answer Convert(Trial& trial, uint32_t direction, Rows rows, const Bytes& src, Bytes* dst) const {
    return trial.Call("layout_convert",
                      [&](trine_error* err) { return Call(direction, rows, src, dst, err); });
  }

 private:
  uint64_t MatrixGroups() const { return (matrix_rows_ + info_.group_rows - 1) / info_.group_rows; }
  // Without a trial: for several threads.
  trine_status Call(uint32_t direction, Rows rows, const Bytes& src, Bytes* dst,
                    trine_error* err) const {
    trine_layout_convert_args args{sizeof(args), direction, &tensor_,   info_.layout,
                                   rows.begin,   rows.end,  src.data(), dst->data()};
    return s_.table().layout_convert(s_.device(), &args, err);
  }

  Session& s_;
  trine_tensor tensor_;
  trine_layout_info info_;
  bool is_cache_;
  uint64_t matrices_, matrix_rows_;
  std::string what_;
};

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_PACKING_H_
