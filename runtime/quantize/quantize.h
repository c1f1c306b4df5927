// Carries out a plan: reads the tensors of a file, encodes them and writes the new file. The bytes
// are the same for any number of threads and on any machine. Memory stays within some megabytes for
// each thread, whatever the size of the model.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/quantize/plan.h"

namespace trine::quantize {

// Tensors are encoded in pieces of this many values: half a megabyte of f32, and whole blocks of
// every type.
inline constexpr int64_t kPieceValues = int64_t{1} << 17;

inline int64_t PiecesOf(const PlannedTensor& tensor) {
  const int64_t values = tensor.source->dims[0] * tensor.source->Rows();
  return (values + kPieceValues - 1) / kPieceValues;
}

struct QuantizeOptions {
  uint32_t threads = 1;
  bool measure_errors = false;  // compares every tensor with its source; takes a little time
  // Called with the fraction that is done. If it returns false, Quantize returns CANCELLED.
  std::function<bool(double)> progress;
};

struct QuantizeResult {
  // One error for each tensor of the plan: the root mean square of the change, divided by the root
  // mean square of the values. 0 for a copy, or if measure_errors is false.
  std::vector<double> errors;
  std::vector<std::string> warnings;
};

// Writes the new file at `path`. `plan` must be made for `file`. The new file gets its name when it
// is complete; a failure leaves no file. Refuses to replace the file that it reads.
absl::StatusOr<QuantizeResult> Quantize(const gguf::File& file, const Plan& plan,
                                        const std::string& path, const QuantizeOptions& options);

}  // namespace trine::quantize
