// Computes cosines and sines of rotary positions with only add, multiply and divide in binary64, so
// the bits are the same on every host, whatever its libm (docs/numerics.md, "Rope tables"). Keeps
// the rows of the first positions once they are computed. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/model/arch/model_config.h"

namespace trine {

class RopeTable {
 public:
  // The most positions whose rows are kept.
  static constexpr int64_t kMostKept = 16384;

  // `factors` divide the frequencies, one per pair; empty: the frequencies stay as they are.
  // Positions are below `positions`.
  RopeTable(const RopeConfig& config, const std::vector<float>& factors, int64_t positions);

  int64_t pairs() const { return static_cast<int64_t>(frequencies_.size()); }

  // Writes 2 * pairs values: the cosines of the position's angles, then the sines, canonical.
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
  // Not initialised, so that the memory of a row is not touched before the row is computed.
  std::unique_ptr<float[]> kept_;
  std::unique_ptr<std::atomic<RowState>[]> states_;
  int64_t n_kept_;
};

}  // namespace trine
