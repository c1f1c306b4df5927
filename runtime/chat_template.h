// Turns messages into the text a model was trained to answer. The file's template is recognised by
// the marks it uses; a template of no known family is refused by what it begins with.
#ifndef TRINE_RUNTIME_CHAT_TEMPLATE_H_
#define TRINE_RUNTIME_CHAT_TEMPLATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/metadata.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

// Text of the template's own, in which control tokens count, and of a message, in which they don't.
struct ChatPiece {
  std::string text;
  bool from_message = false;
};

// Ends with the beginning of the assistant's answer. FAILED_PRECONDITION when the file has no
// template, UNIMPLEMENTED when it is of no known family, INVALID_ARGUMENT for an unknown role.
absl::StatusOr<std::vector<ChatPiece>> ApplyChatTemplate(const gguf::Metadata& metadata,
                                                         const std::vector<ChatMessage>& messages);

// The pieces joined, as tokens. What a message says can't become a control token: "<|im_end|>" in
// it is text like any other.
absl::StatusOr<std::vector<int32_t>> EncodeChat(const Tokenizer& tokenizer,
                                                const std::vector<ChatPiece>& pieces);

}  // namespace trine

#endif  // TRINE_RUNTIME_CHAT_TEMPLATE_H_
