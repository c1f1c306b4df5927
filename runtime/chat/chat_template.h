// Turns messages into the text and the tokens that a model was trained to answer, with the chat
// template of the model's file or with another template. docs/chat.md says what templates can do.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/metadata.h"
#include "runtime/template/template.h"
#include "runtime/template/values/text.h"
#include "runtime/template/values/value.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {

// The input of a template besides the messages.
struct ChatOptions {
  jinja::Value tools;                 // a list; undefined: no tools
  bool add_generation_prompt = true;  // end with the beginning of the assistant's answer
  jinja::Variables extra;             // other variables of the template; set before the rest
  std::optional<std::tm> now;         // for templates that write the date; unset: the local time
};

// A parsed chat template. Immutable; any number of threads may render at once.
class ChatTemplate {
 public:
  // Uses the file's own templates: tokenizer.chat_template, and for conversations with tools
  // tokenizer.chat_template.tool_use if the file has it. Fails with FAILED_PRECONDITION if the file
  // has no template.
  static absl::StatusOr<ChatTemplate> FromModel(const gguf::Metadata& metadata,
                                                const Tokenizer& tokenizer);
  // Uses this template for all conversations.
  static absl::StatusOr<ChatTemplate> FromSource(std::string source, const Tokenizer& tokenizer);

  // Writes the conversation down as the template says. Marks text from messages, tools and extra
  // variables as foreign. Fails with INVALID_ARGUMENT and the template's words if the template
  // refuses the messages. REQUIRES: `messages` come from NormalizeMessages.
  absl::StatusOr<jinja::Text> Render(const jinja::Value& messages,
                                     const ChatOptions& options) const;

  // Returns the source of the template for conversations with tools.
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

// Encodes the text. `at_start`: no tokens precede it, so a model that wants a BOS gets exactly one.
// Foreign text can't become a control token: "<|im_end|>" in a message is ordinary text.
absl::StatusOr<std::vector<int32_t>> EncodeChat(const Tokenizer& tokenizer, const jinja::Text& text,
                                                bool at_start = true);

// Returns the message {"role": role, "content": content}, as a value that a template can read.
jinja::Value ChatMessage(std::string_view role, std::string_view content);

// Returns the messages in the form that templates expect: joins the text parts of a content, and
// parses arguments of tool calls that are JSON in a string. Keeps all other members: name,
// tool_call_id, reasoning_content, ... Fails with INVALID_ARGUMENT, with the number of the message,
// if a message has no role or has parts that are not text.
absl::StatusOr<jinja::Value> NormalizeMessages(const jinja::Value& messages);

// Parses a JSON array of messages and normalizes them.
absl::StatusOr<jinja::Value> ParseMessages(std::string_view json);

// Parses a JSON array of tools, in the form that models are given.
absl::StatusOr<jinja::Value> ParseTools(std::string_view json);

// Parses a JSON object. Each member becomes a variable of the template.
absl::StatusOr<jinja::Variables> ParseVariables(std::string_view json);

}  // namespace trine
