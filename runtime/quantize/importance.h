// An importance matrix: how much each column of each matrix matters, measured as the mean square of
// what the column is multiplied with while a model reads text. Read from a GGUF file, or from the
// older format without a head, both as llama.cpp's imatrix tool writes them.
#ifndef TRINE_RUNTIME_QUANTIZE_IMPORTANCE_H_
#define TRINE_RUNTIME_QUANTIZE_IMPORTANCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/gguf/gguf_file.h"

namespace trine::quantize {

class ImportanceMatrix {
 public:
  static absl::StatusOr<ImportanceMatrix> Read(const std::string& path);

  // Of a tensor: one weight for each column, of a tensor with experts for each column of each
  // expert. Empty when there are none.
  absl::Span<const float> Find(std::string_view tensor) const;

  size_t tensors() const { return weights_.size(); }
  int64_t chunks() const { return chunks_; }  // of text it was measured on; 0: not known
  const std::string& dataset() const { return dataset_; }

 private:
  absl::Status ReadGguf(const gguf::File& file);
  absl::Status ReadHeadless(absl::Span<const std::byte> bytes);
  absl::Status Add(std::string_view tensor, std::vector<float> weights);

  absl::flat_hash_map<std::string, std::vector<float>> weights_;
  int64_t chunks_ = 0;
  std::string dataset_;
};

}  // namespace trine::quantize

#endif  // TRINE_RUNTIME_QUANTIZE_IMPORTANCE_H_
