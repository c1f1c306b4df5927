// An importance matrix says how much each column of each matrix matters: the mean square of the
// values that the column was multiplied by while a model read a text. It is read from a GGUF file
// or from the older format without a header. llama.cpp's imatrix tool writes both.
#pragma once

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

  // Returns a tensor's weights, one for each column, or for each column of each expert. Returns an
  // empty span if the matrix does not have the tensor.
  absl::Span<const float> Find(std::string_view tensor) const;

  size_t tensors() const { return weights_.size(); }
  int64_t chunks() const { return chunks_; }               // pieces of text read; 0: unknown
  const std::string& dataset() const { return dataset_; }  // the name of the text

 private:
  absl::Status ReadGguf(const gguf::File& file);
  absl::Status ReadHeadless(absl::Span<const std::byte> bytes);
  absl::Status Add(std::string_view tensor, std::vector<float> weights);

  absl::flat_hash_map<std::string, std::vector<float>> weights_;
  int64_t chunks_ = 0;
  std::string dataset_;
};

}  // namespace trine::quantize
