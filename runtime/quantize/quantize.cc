#include "runtime/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/gguf/writer.h"
#include "runtime/quantize/ordered_work.h"
#include "runtime/quantize/tensor_encoder.h"

namespace trine::quantize {
namespace {

namespace fs = std::filesystem;

absl::Status CheckOutput(const gguf::File& file, const std::string& path) {
  std::error_code error;
  for (const gguf::Part& part : file.parts()) {
    if (fs::equivalent(path, part.path, error)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": is the file that is read; give the new one another name"));
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
  std::vector<int64_t> first_job_;  // of each tensor
  int64_t jobs_ = 0;
  std::vector<double> squared_errors_;  // of each tensor
  std::vector<double> squared_values_;
  int64_t last_rounded_ = -1;
  int64_t rounded_ternary_ = 0;
};

}  // namespace

absl::StatusOr<QuantizeResult> Quantize(const gguf::File& file, const Plan& plan,
                                        const std::string& path, const QuantizeOptions& options) {
  absl::Status status = CheckOutput(file, path);
  if (!status.ok()) return status;
  auto writer = gguf::Writer::Create(path, plan.builder);
  if (!writer.ok()) return writer.status();
  Run run(plan, options, writer->get());
  status = run.Do();
  if (status.ok()) status = (*writer)->Finish();
  if (!status.ok()) return status;
  return run.Result();
}

}  // namespace trine::quantize
