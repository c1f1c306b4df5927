#include "runtime/quantize/tensor_encoder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/quant/dequantize.h"
#include "kernels/quant/encode.h"
#include "kernels/quant/validate.h"
#include "runtime/gguf/quoted.h"

namespace trine::quantize {
namespace {

// Pieces begin where blocks of every type do, and rows are whole blocks, so that a tensor is one
// long row.
uint64_t BytesOf(quant::Type type, int64_t values) {
  uint64_t bytes = 0;
  quant::RowBytes(type, values, &bytes);
  return bytes;
}

int64_t ValuesIn(const PlannedTensor& tensor, int64_t index) {
  const int64_t values = tensor.source->dims[0] * tensor.source->Rows();
  return std::min(kPieceValues, values - index * kPieceValues);
}

// The importance of the columns from value `at` of the tensor on, to the end of its row.
const float* ImportanceAt(const PlannedTensor& tensor, int64_t at) {
  if (tensor.importance.empty()) return nullptr;
  const int64_t columns = tensor.source->dims[0];
  const int64_t matrix = at / (columns * tensor.source->dims[1]);
  const bool per_matrix = static_cast<int64_t>(tensor.importance.size()) > columns;
  return tensor.importance.data() + (per_matrix ? matrix * columns : 0) + at % columns;
}

bool IsTernaryType(quant::Type type) {
  return type == quant::Type::kTQ1_0 || type == quant::Type::kTQ2_0;
}

absl::Status NoNumber(const PlannedTensor& tensor, int64_t at) {
  const int64_t columns = tensor.source->dims[0];
  return absl::InvalidArgumentError(absl::StrCat("the tensor ", gguf::Quoted(tensor.source->name),
                                                 " holds an infinity or NaN in row ", at / columns,
                                                 ", column ", at % columns));
}

}  // namespace

absl::Span<const std::byte> Piece::Source(const PlannedTensor& tensor, int64_t index) {
  const quant::Type type = tensor.source->type;
  return absl::MakeConstSpan(tensor.source->data + BytesOf(type, index * kPieceValues),
                             BytesOf(type, ValuesIn(tensor, index)));
}

absl::Status Piece::Encode(const PlannedTensor& tensor, int64_t index, bool measure_error) {
  const int64_t first = index * kPieceValues;
  const int64_t count = ValuesIn(tensor, index);
  values_.resize(static_cast<size_t>(count));
  quant::DequantizeRow(tensor.source->type, Source(tensor, index).data(), count, values_.data());
  buffer_.resize(BytesOf(tensor.type, count));
  bytes_ = buffer_;

  const int64_t columns = tensor.source->dims[0];
  for (int64_t at = first; at < first + count;) {
    const int64_t run = std::min(columns - at % columns, first + count - at);
    const float* x = values_.data() + (at - first);
    if (!quant::EncodeRow(tensor.type, x, run, ImportanceAt(tensor, at),
                          buffer_.data() + BytesOf(tensor.type, at - first))) {
      return NoNumber(tensor,
                      at + std::max<int64_t>(0, quant::FirstNonFinite(quant::Type::kF32, x, run)));
    }
    at += run;
  }
  ternary_ = !IsTernaryType(tensor.type) || quant::IsTernary(values_.data(), count);
  squared_error_ = squared_values_ = 0;
  if (measure_error) Measure(tensor.type, count);
  return absl::OkStatus();
}

void Piece::Measure(quant::Type type, int64_t values) {
  decoded_.resize(static_cast<size_t>(values));
  quant::DequantizeRow(type, buffer_.data(), values, decoded_.data());
  for (size_t i = 0; i < decoded_.size(); ++i) {
    const double value = values_[i];
    const double error = value - decoded_[i];
    squared_error_ += error * error;
    squared_values_ += value * value;
  }
}

}  // namespace trine::quantize
