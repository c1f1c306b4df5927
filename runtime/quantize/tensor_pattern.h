// A regular expression over tensor names, as --tensor-type takes it.
#ifndef TRINE_RUNTIME_QUANTIZE_TENSOR_PATTERN_H_
#define TRINE_RUNTIME_QUANTIZE_TENSOR_PATTERN_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace trine::quantize {

class TensorPattern {
 public:
  static absl::StatusOr<TensorPattern> Create(std::string_view expression);
  ~TensorPattern();
  TensorPattern(TensorPattern&&) noexcept;
  TensorPattern& operator=(TensorPattern&&) noexcept;

  // Whether it is found anywhere in the name. An expression that would try for too long on this
  // name is an error.
  absl::StatusOr<bool> Matches(std::string_view name) const;

  const std::string& text() const { return text_; }

 private:
  struct Compiled;
  TensorPattern(std::string text, std::unique_ptr<const Compiled> compiled);

  std::string text_;
  std::unique_ptr<const Compiled> compiled_;
};

}  // namespace trine::quantize

#endif  // TRINE_RUNTIME_QUANTIZE_TENSOR_PATTERN_H_
