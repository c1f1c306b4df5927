#include "runtime/chat_template.h"

#include <utility>

#include "absl/status/status.h"

namespace trine {
namespace {

using jinja::Value;

std::string SpecialTextOf(const Tokenizer& tokenizer, int32_t id) {
  return std::string(tokenizer.TokenText(id));
}

}  // namespace

ChatTemplate::ChatTemplate(jinja::Template plain, const Tokenizer& tokenizer)
    : plain_(std::move(plain)),
      bos_token_(SpecialTextOf(tokenizer, tokenizer.bos())),
      eos_token_(SpecialTextOf(tokenizer, tokenizer.eos())) {}

absl::StatusOr<ChatTemplate> ChatTemplate::FromSource(std::string source,
                                                      const Tokenizer& tokenizer) {
  auto plain = jinja::Template::Parse(std::move(source));
  if (!plain.ok()) return plain.status();
  return ChatTemplate(*std::move(plain), tokenizer);
}

absl::StatusOr<ChatTemplate> ChatTemplate::FromModel(const gguf::Metadata& metadata,
                                                     const Tokenizer& tokenizer) {
  const auto source = metadata.StringOr("tokenizer.chat_template", "");
  if (!source.ok()) return source.status();
  if (source->empty()) {
    return absl::FailedPreconditionError(
        "the model has no chat template (tokenizer.chat_template), and none was given "
        "(--chat-template)");
  }
  auto chat = FromSource(std::string(*source), tokenizer);
  if (!chat.ok()) return chat;
  const auto tool_use = metadata.StringOr("tokenizer.chat_template.tool_use", "");
  if (!tool_use.ok()) return tool_use.status();
  if (!tool_use->empty()) {
    auto for_tools = jinja::Template::Parse(std::string(*tool_use));
    if (!for_tools.ok()) return for_tools.status();
    chat->for_tools_ = *std::move(for_tools);
  }
  return chat;
}

absl::StatusOr<jinja::Text> ChatTemplate::Render(const Value& messages,
                                                 const ChatOptions& options) const {
  jinja::Variables variables = options.extra;
  variables.emplace_back("messages", messages);
  variables.emplace_back("add_generation_prompt", Value::Bool(options.add_generation_prompt));
  variables.emplace_back("bos_token", Value::String(bos_token_));
  variables.emplace_back("eos_token", Value::String(eos_token_));
  const bool has_tools = options.tools.Truthy();
  if (has_tools) variables.emplace_back("tools", options.tools);
  jinja::RenderOptions render;
  render.now = options.now;
  return (has_tools && for_tools_ ? *for_tools_ : plain_).Render(variables, render);
}

}  // namespace trine
