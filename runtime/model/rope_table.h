// Cosines and sines of rotary positions, computed from add, multiply and divide in binary64 alone:
// the same bits on every host, whatever its libm. docs/numerics.md, "Rope tables". Rows of the
// first positions are kept when they have been computed. Thread-safe.
#ifndef TRINE_RUNTIME_MODEL_ROPE_TABLE_H_
#define TRINE_RUNTIME_MODEL_ROPE_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/model/rope_config.h"

namespace trine {

class RopeTable {
 public:
  // Positions whose rows are kept, at most.
  static constexpr int64_t kMostKept = 16384;

  // `factors` divide the frequencies, one per pair; empty: none. `positions`: how many there may
  // be.
  RopeTable(const RopeConfig& config, const std::vector<float>& factors, int64_t positions);

  int64_t pairs() const { return static_cast<int64_t>(frequencies_.size()); }

  // 2 * pairs values: the cosines of the position's angles, then the sines, canonical.
  void Row(int64_t position, float* out) const;
  void AppendRow(int64_t position, std::vector<float>* rows) const {
    const size_t begin = rows->size();
    rows->resize(begin + 2 * frequencies_.size());
    Row(position, rows->data() + begin);
  }

 private:
  enum class RowState : uint8_t { kUnknown, kBeingWritten, kKept };

  void Compute(int64_t position, float* out) const;

  std::vector<double> frequencies_;  // radians per position
  double magnitude_;
  // Memory that is not touched before its row is.
  std::unique_ptr<float[]> kept_;
  std::unique_ptr<std::atomic<RowState>[]> states_;
  int64_t n_kept_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_ROPE_TABLE_H_
