// Turns messages into the text, and the tokens, a model was trained to answer: runs the chat
// template of the model's file, or one that was given. docs/chat.md says what templates can do.
#ifndef TRINE_RUNTIME_CHAT_TEMPLATE_H_
#define TRINE_RUNTIME_CHAT_TEMPLATE_H_

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/metadata.h"
#include "runtime/template/template.h"
#include "runtime/template/text.h"
#include "runtime/template/value.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {

// What a template is told beside the messages.
struct ChatOptions {
  jinja::Value tools;                 // a list; undefined for none
  bool add_generation_prompt = true;  // end with the beginning of the assistant's answer
  jinja::Variables extra;             // whatever else the template asks for; goes before the rest
  std::optional<std::tm> now;         // for templates that tell the date; else the local time
};

// Parsed once; rendered by any number of threads at once.
class ChatTemplate {
 public:
  // The file's own: tokenizer.chat_template, and for conversations with tools
  // tokenizer.chat_template.tool_use where there is one. FAILED_PRECONDITION when it has none.
  static absl::StatusOr<ChatTemplate> FromModel(const gguf::Metadata& metadata,
                                                const Tokenizer& tokenizer);
  static absl::StatusOr<ChatTemplate> FromSource(std::string source, const Tokenizer& tokenizer);

  // `messages` as NormalizeMessages gives them. What came from them, from the tools or from extra
  // variables is marked as foreign. INVALID_ARGUMENT with the template's own words where it refuses
  // them.
  absl::StatusOr<jinja::Text> Render(const jinja::Value& messages,
                                     const ChatOptions& options) const;

  // Of what conversations with tools are rendered by.
  const std::string& source_for_tools() const {
    return (for_tools_ ? *for_tools_ : plain_).source();
  }

 private:
  ChatTemplate(jinja::Template plain, const Tokenizer& tokenizer);

  jinja::Template plain_;
  std::optional<jinja::Template> for_tools_;
  std::string bos_token_;
  std::string eos_token_;
};

// The text as tokens. `at_start`: nothing stands before them, and one BOS goes there where the
// model wants one. What is foreign can't become a control token: "<|im_end|>" in a message is text
// like any other.
absl::StatusOr<std::vector<int32_t>> EncodeChat(const Tokenizer& tokenizer, const jinja::Text& text,
                                                bool at_start = true);

}  // namespace trine

#endif  // TRINE_RUNTIME_CHAT_TEMPLATE_H_
