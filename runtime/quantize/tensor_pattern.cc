#include "runtime/quantize/tensor_pattern.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/quoted.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace trine::quantize {
namespace {

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

constexpr uint32_t kMatchLimit = 100'000;  // steps of backtracking

std::string ErrorText(int code) {
  PCRE2_UCHAR8 text[256];
  if (pcre2_get_error_message(code, text, sizeof(text)) < 0) return absl::StrCat("error ", code);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct TensorPattern::Compiled {
  std::unique_ptr<pcre2_code, Free<pcre2_code_free>> code;
  std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>> data;
  std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>> context;
};

TensorPattern::TensorPattern(std::string text, std::unique_ptr<const Compiled> compiled)
    : text_(std::move(text)), compiled_(std::move(compiled)) {}
TensorPattern::~TensorPattern() = default;
TensorPattern::TensorPattern(TensorPattern&&) noexcept = default;
TensorPattern& TensorPattern::operator=(TensorPattern&&) noexcept = default;

absl::StatusOr<TensorPattern> TensorPattern::Create(std::string_view expression) {
  auto compiled = std::make_unique<Compiled>();
  int error = 0;
  PCRE2_SIZE offset = 0;
  compiled->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR8>(expression.data()),
                                     expression.size(), 0, &error, &offset, nullptr));
  if (compiled->code == nullptr) {
    return Invalid("the expression ", gguf::Quoted(expression), " is wrong at offset ", offset,
                   ": ", ErrorText(error));
  }
  compiled->data.reset(pcre2_match_data_create(1, nullptr));
  compiled->context.reset(pcre2_match_context_create(nullptr));
  if (compiled->data == nullptr || compiled->context == nullptr) {
    return absl::ResourceExhaustedError("no memory for a regular expression");
  }
  pcre2_set_match_limit(compiled->context.get(), kMatchLimit);
  return TensorPattern(std::string(expression), std::move(compiled));
}

absl::StatusOr<bool> TensorPattern::Matches(std::string_view name) const {
  const int found = pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR8>(name.data()),
                                name.size(), 0, 0, compiled_->data.get(), compiled_->context.get());
  if (found >= 0) return true;
  if (found == PCRE2_ERROR_NOMATCH) return false;
  return Invalid("the expression ", gguf::Quoted(text_), " fails on the tensor ",
                 gguf::Quoted(name), ": ", ErrorText(found));
}

}  // namespace trine::quantize
