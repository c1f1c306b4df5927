#include "runtime/tokenizer/detokenizer.h"

#include <utility>

#include "runtime/tokenizer/utf8.h"

namespace trine {

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer,
                         const DetokenizerOptions& options)
    : tokenizer_(std::move(tokenizer)),
      options_(options),
      strip_space_(options.at_start && tokenizer_->adds_space_prefix()) {}

void Detokenizer::Push(int32_t id, std::string* text) {
  const std::string_view bytes = tokenizer_->NextBytes(id, options_.special, &strip_space_);
  held_.append(bytes);
  held_.erase(0, AppendValidUtf8(held_, text));
}

std::string Detokenizer::Push(int32_t id) {
  std::string text;
  Push(id, &text);
  return text;
}

std::string Detokenizer::Flush() {
  std::string text;
  if (!held_.empty()) text = kReplacementCharacter;
  held_.clear();
  strip_space_ = options_.at_start && tokenizer_->adds_space_prefix();
  return text;
}

}  // namespace trine
