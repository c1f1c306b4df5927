// Encodes a tensor piece by piece: the work of one job.
#ifndef TRINE_RUNTIME_QUANTIZE_TENSOR_ENCODER_H_
#define TRINE_RUNTIME_QUANTIZE_TENSOR_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/quantize/plan.h"

namespace trine::quantize {

// Values of a tensor that are encoded at once: whole blocks of every type, half a megabyte of f32.
inline constexpr int64_t kPieceValues = int64_t{1} << 17;

inline int64_t PiecesOf(const PlannedTensor& tensor) {
  const int64_t values = tensor.source->dims[0] * tensor.source->Rows();
  return (values + kPieceValues - 1) / kPieceValues;
}

// Buffers of a piece, and what is known of it once it is encoded.
class Piece {
 public:
  // Of a tensor that is not copied. An error names the tensor and the value that is no number.
  absl::Status Encode(const PlannedTensor& tensor, int64_t index, bool measure_error);

  // A piece of a tensor that is copied: the source's bytes.
  static absl::Span<const std::byte> Source(const PlannedTensor& tensor, int64_t index);

  absl::Span<const std::byte> bytes() const { return bytes_; }
  double squared_error() const { return squared_error_; }
  double squared_values() const { return squared_values_; }
  bool ternary() const { return ternary_; }  // true for types that are not

 private:
  void Measure(quant::Type type, int64_t values);

  std::vector<float> values_;
  std::vector<float> decoded_;
  std::vector<std::byte> buffer_;
  absl::Span<const std::byte> bytes_;
  double squared_error_ = 0;
  double squared_values_ = 0;
  bool ternary_ = true;
};

}  // namespace trine::quantize

#endif  // TRINE_RUNTIME_QUANTIZE_TENSOR_ENCODER_H_
