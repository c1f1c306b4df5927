// Chat templates in the C API.
#include <string_view>
#include <utility>

#include "runtime/c_api_support.h"
#include "runtime/chat_messages.h"
#include "runtime/chat_template.h"
#include "runtime/set_tokens.h"

namespace trine::c_api {
namespace {

absl::StatusOr<trine_chat_options> ReadOptions(const trine_chat_options* given) {
  trine_chat_options read{};
  if (absl::Status s = ReadStruct("options", given, &read); !s.ok()) return s;
  const absl::Status flags =
      CheckFlags(read.flags, TRINE_CHAT_NO_GENERATION_PROMPT | TRINE_CHAT_REPLACE);
  if (!flags.ok()) return flags;
  return read;
}

absl::StatusOr<jinja::Text> Render(const Engine& engine, const char* messages, size_t bytes,
                                   const trine_chat_options& options) {
  if (messages == nullptr) return NullArgument("messages");
  const auto parsed = ParseMessages(std::string_view(messages, bytes));
  if (!parsed.ok()) return parsed.status();
  ChatOptions chat;
  chat.add_generation_prompt = (options.flags & TRINE_CHAT_NO_GENERATION_PROMPT) == 0;
  if (options.tools != nullptr) {
    auto tools = ParseTools(options.tools);
    if (!tools.ok()) return tools.status();
    chat.tools = *std::move(tools);
  }
  if (options.variables != nullptr) {
    auto extra = ParseVariables(options.variables);
    if (!extra.ok()) return extra.status();
    chat.extra = *std::move(extra);
  }
  const Tokenizer& tokenizer = *engine.tokenizer();
  const auto chosen = options.chat_template != nullptr
                          ? ChatTemplate::FromSource(options.chat_template, tokenizer)
                          : ChatTemplate::FromModel(engine.file().metadata(), tokenizer);
  if (!chosen.ok()) return chosen.status();
  return chosen->Render(*parsed, chat);
}

}  // namespace
}  // namespace trine::c_api

extern "C" {

using namespace trine::c_api;  // NOLINT: this file is that namespace's other side

int32_t trine_chat_render(const trine_engine* engine, const char* messages, size_t bytes,
                          const trine_chat_options* options, char* text, size_t capacity,
                          size_t* text_bytes, trine_failure* why) {
  return Guarded(why, [&]() -> absl::Status {
    if (engine == nullptr) return NullArgument("engine");
    const auto read = ReadOptions(options);
    if (!read.ok()) return read.status();
    const auto rendered = Render(*engine->engine, messages, bytes, *read);
    if (!rendered.ok()) return rendered.status();
    return CopyOut(rendered->bytes().data(), rendered->size(), text, capacity, text_bytes);
  });
}

int32_t trine_session_append_chat(trine_session* session, const char* messages, size_t bytes,
                                  const trine_chat_options* options, trine_failure* why) {
  return Guarded(why, [&]() -> absl::Status {
    if (session == nullptr) return NullArgument("session");
    const auto read = ReadOptions(options);
    if (!read.ok()) return read.status();
    const trine::Engine& engine = session->session->engine();
    const auto rendered = Render(engine, messages, bytes, *read);
    if (!rendered.ok()) return rendered.status();
    const bool replace = (read->flags & TRINE_CHAT_REPLACE) != 0;
    const bool at_start = replace || session->session->sequence().size() == 0;
    const auto tokens = trine::EncodeChat(*engine.tokenizer(), *rendered, at_start);
    if (!tokens.ok()) return tokens.status();
    if (replace) return trine::SetTokens(session->session.get(), *tokens);
    return session->session->Append(*tokens);
  });
}

}  // extern "C"
