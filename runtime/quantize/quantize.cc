#include "runtime/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "kernels/quant/dequantize.h"
#include "kernels/quant/encode.h"
#include "kernels/quant/validate.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/quoted.h"
#include "runtime/gguf/writer.h"
#include "runtime/quantize/ordered_work.h"

namespace trine::quantize {
namespace {

// Pieces begin at block borders of every type, and rows are whole blocks, so a tensor counts as one
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

// Returns the importance of the columns from value `at` to the end of its row; null: none.
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
  return Invalid("the tensor ", gguf::Quoted(tensor.source->name),
                 " holds an infinity or NaN in row ", at / columns, ", column ", at % columns);
}

// The buffers of a piece, and the results of encoding it.
class Piece {
 public:
  // Encodes a piece of a tensor that is not copied. The error names the tensor and the value that
  // is not finite.
  absl::Status Encode(const PlannedTensor& tensor, int64_t index, bool measure_error) {
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
        return NoNumber(
            tensor, at + std::max<int64_t>(0, quant::FirstNonFinite(quant::Type::kF32, x, run)));
      }
      at += run;
    }
    ternary_ = !IsTernaryType(tensor.type) || quant::IsTernary(values_.data(), count);
    squared_error_ = squared_values_ = 0;
    if (measure_error) Measure(tensor.type, count);
    return absl::OkStatus();
  }

  // Returns the source's bytes for a piece of a tensor that is copied.
  static absl::Span<const std::byte> Source(const PlannedTensor& tensor, int64_t index) {
    const quant::Type type = tensor.source->type;
    return absl::MakeConstSpan(tensor.source->data + BytesOf(type, index * kPieceValues),
                               BytesOf(type, ValuesIn(tensor, index)));
  }

  absl::Span<const std::byte> bytes() const { return bytes_; }
  double squared_error() const { return squared_error_; }
  double squared_values() const { return squared_values_; }
  bool ternary() const { return ternary_; }  // true for types that are not ternary

 private:
  void Measure(quant::Type type, int64_t values) {
    decoded_.resize(static_cast<size_t>(values));
    quant::DequantizeRow(type, buffer_.data(), values, decoded_.data());
    for (size_t i = 0; i < decoded_.size(); ++i) {
      const double value = values_[i];
      const double error = value - decoded_[i];
      squared_error_ += error * error;
      squared_values_ += value * value;
    }
  }

  std::vector<float> values_;
  std::vector<float> decoded_;
  std::vector<std::byte> buffer_;
  absl::Span<const std::byte> bytes_;
  double squared_error_ = 0;
  double squared_values_ = 0;
  bool ternary_ = true;
};

absl::Status CheckOutput(const gguf::File& file, const std::string& path) {
  std::error_code error;
  for (const gguf::Part& part : file.parts()) {
    if (std::filesystem::equivalent(path, part.path, error)) {
      return Invalid(path, ": is the file that is read; give the new one another name");
    }
  }
  return absl::OkStatus();
}

class Run {
 public:
  Run(const Plan& plan, const QuantizeOptions& options, gguf::Writer* writer)
      : plan_(plan), options_(options), writer_(writer), pieces_(SlotsFor(options.threads)) {
    for (const PlannedTensor& tensor : plan.tensors) {
      first_job_.push_back(jobs_);
      jobs_ += PiecesOf(tensor);
    }
    squared_errors_.resize(plan.tensors.size());
    squared_values_.resize(plan.tensors.size());
  }

  absl::Status Do() {
    return RunInOrder(
        jobs_, options_.threads, [this](int64_t job, size_t slot) { return Produce(job, slot); },
        [this](int64_t job, size_t slot) { return Consume(job, slot); });
  }

  QuantizeResult Result() const {
    QuantizeResult result;
    for (size_t i = 0; i < squared_errors_.size(); ++i) {
      const double values = squared_values_[i];
      result.errors.push_back(values > 0 ? std::sqrt(squared_errors_[i] / values) : 0);
    }
    if (rounded_ternary_ > 0) {
      result.warnings.push_back(
          absl::StrCat(rounded_ternary_,
                       " of the tensors stored as ternary numbers hold others: they were "
                       "rounded, and the model is hardly of use"));
    }
    return result;
  }

 private:
  size_t TensorOf(int64_t job) const {
    const auto after = std::upper_bound(first_job_.begin(), first_job_.end(), job);
    return static_cast<size_t>(after - first_job_.begin()) - 1;
  }

  absl::Status Produce(int64_t job, size_t slot) {
    const size_t index = TensorOf(job);
    const PlannedTensor& tensor = plan_.tensors[index];
    if (tensor.copied()) return absl::OkStatus();
    return pieces_[slot].Encode(tensor, job - first_job_[index], options_.measure_errors);
  }

  absl::Status Consume(int64_t job, size_t slot) {
    if (options_.progress &&
        !options_.progress(static_cast<double>(job) / static_cast<double>(jobs_))) {
      return absl::CancelledError("cancelled: nothing was written");
    }
    const size_t index = TensorOf(job);
    const PlannedTensor& tensor = plan_.tensors[index];
    if (tensor.copied()) return writer_->Write(Piece::Source(tensor, job - first_job_[index]));
    const Piece& piece = pieces_[slot];
    squared_errors_[index] += piece.squared_error();
    squared_values_[index] += piece.squared_values();
    if (!piece.ternary() && last_rounded_ != static_cast<int64_t>(index)) {
      last_rounded_ = static_cast<int64_t>(index);
      ++rounded_ternary_;
    }
    return writer_->Write(piece.bytes());
  }

  const Plan& plan_;
  const QuantizeOptions& options_;
  gguf::Writer* const writer_;
  std::vector<Piece> pieces_;       // by slot
  std::vector<int64_t> first_job_;  // by tensor
  int64_t jobs_ = 0;
  std::vector<double> squared_errors_;  // by tensor
  std::vector<double> squared_values_;
  int64_t last_rounded_ = -1;
  int64_t rounded_ternary_ = 0;
};

}  // namespace

absl::StatusOr<QuantizeResult> Quantize(const gguf::File& file, const Plan& plan,
                                        const std::string& path, const QuantizeOptions& options) {
  if (const absl::Status s = CheckOutput(file, path); !s.ok()) return s;
  auto writer = gguf::Writer::Create(path, plan.builder);
  if (!writer.ok()) return writer.status();
  Run run(plan, options, writer->get());
  absl::Status status = run.Do();
  if (status.ok()) status = (*writer)->Finish();
  if (!status.ok()) return status;
  return run.Result();
}

}  // namespace trine::quantize
