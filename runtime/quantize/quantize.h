// Carries out a plan: reads the tensors of a file, encodes them, writes the new file. The bytes of
// the file are the same for any number of threads and on any machine; memory stays within some
// megabytes for each thread, whatever the size of the model.
#ifndef TRINE_RUNTIME_QUANTIZE_QUANTIZE_H_
#define TRINE_RUNTIME_QUANTIZE_QUANTIZE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/quantize/plan.h"

namespace trine::quantize {

struct QuantizeOptions {
  uint32_t threads = 1;
  bool measure_errors = false;  // compare every tensor with its source; takes a little time
  // How much is done, 0 to 1; false ends it with CANCELLED.
  std::function<bool(double)> progress;
};

struct QuantizeResult {
  // For each tensor of the plan: root mean square of the change relative to that of the values. 0
  // for a copy, or where it was not asked for.
  std::vector<double> errors;
  std::vector<std::string> warnings;
};

// The file appears under `path` when it is complete; nothing is left when it fails. Refuses to
// replace the file it reads. `plan` is one of `file`.
absl::StatusOr<QuantizeResult> Quantize(const gguf::File& file, const Plan& plan,
                                        const std::string& path, const QuantizeOptions& options);

}  // namespace trine::quantize

#endif  // TRINE_RUNTIME_QUANTIZE_QUANTIZE_H_
