// A regular expression that is matched with tensor names, for --tensor-type.
#pragma once

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

  // Returns whether the expression matches anywhere in the name. Returns an error if the match
  // would take too long.
  absl::StatusOr<bool> Matches(std::string_view name) const;

  const std::string& text() const { return text_; }

 private:
  struct Compiled;
  TensorPattern(std::string text, std::unique_ptr<const Compiled> compiled);

  std::string text_;
  std::unique_ptr<const Compiled> compiled_;
};

}  // namespace trine::quantize
