#include "runtime/chat/chat_template.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "runtime/base/invalid.h"
#include "runtime/template/values/print.h"
#include "runtime/tokenizer/special_tokens.h"

namespace trine {
namespace {

using jinja::Value;

std::string SpecialTextOf(const Tokenizer& tokenizer, int32_t id) {
  return std::string(tokenizer.TokenText(id));
}

// Returns the texts of control tokens, sorted.
std::vector<std::string_view> ControlTexts(const Tokenizer& tokenizer) {
  std::vector<std::string_view> texts;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const TokenType type = tokenizer.Type(id);
    if (type != TokenType::kControl && type != TokenType::kUnknown) continue;
    const std::string_view text = tokenizer.TokenText(id);
    if (text.size() > 1) texts.push_back(text);
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

// Returns cuts inside every control text whose first or last byte is foreign. If only bytes in
// between are foreign, the control text stays whole: a template may write "<|" + role + "|>".
std::vector<size_t> FindCuts(const Tokenizer& tokenizer, const jinja::Text& text) {
  std::vector<size_t> cuts;
  if (!text.has_foreign()) return cuts;
  const std::vector<std::string_view> control = ControlTexts(tokenizer);
  const std::string_view bytes = text.bytes();
  for (size_t at = 0; at < bytes.size(); ++at) {
    bool foreign = false;
    FindAtFront(control.begin(), control.end(), std::identity(), bytes.substr(at), 0, [&](auto it) {
      foreign = foreign || text.ForeignAt(at) || text.ForeignAt(at + it->size() - 1);
    });
    if (foreign) cuts.push_back(at + 1);
  }
  return cuts;
}

using jinja::Dict;
using jinja::Given;
using jinja::Text;
using Kind = Value::Kind;

const Value* FindString(const Dict& dict, std::string_view key) {
  const Value* value = dict.Find(key);
  return value != nullptr && value->is(Kind::kString) ? value : nullptr;
}

// Joins [{"type": "text", "text": ...}, ...] into one string.
absl::StatusOr<Value> JoinParts(const std::vector<Value>& parts) {
  Text text;
  for (const Value& part : parts) {
    const Value* words = part.is(Kind::kDict) ? FindString(part.dict(), "text") : nullptr;
    if (words == nullptr) return absl::InvalidArgumentError("has a part that is not text");
    text.Append(words->text());
  }
  return Value::String(std::move(text));
}

// Parses the arguments in {"function": {"name": ..., "arguments": "{...}"}, ...}. Leaves them
// unchanged if they are not a JSON object, because a model may have written them.
Value ReadArguments(const Value& call) {
  const Value* function = call.is(Kind::kDict) ? call.dict().Find("function") : nullptr;
  if (function == nullptr || !function->is(Kind::kDict)) return call;
  const Value* arguments = FindString(function->dict(), "arguments");
  if (arguments == nullptr) return call;
  const auto read = jinja::ParseJson(arguments->text().bytes(), "arguments");
  if (!read.ok() || !read->is(Kind::kDict)) return call;
  Dict with_arguments = function->dict();
  with_arguments.Set(Text("arguments"), *read);
  Dict out = call.dict();
  out.Set(Text("function"), Given::OfDict(std::move(with_arguments)));
  return Given::OfDict(std::move(out));
}

absl::StatusOr<Value> NormalizeMessage(const Value& message) {
  if (!message.is(Kind::kDict)) return absl::InvalidArgumentError("is no object");
  if (FindString(message.dict(), "role") == nullptr) {
    return absl::InvalidArgumentError("has no role");
  }
  Dict out = message.dict();
  const Value* content = out.Find("content");
  if (content == nullptr) {
    out.Set(Text("content"), Value::None());
  } else if (content->is(Kind::kList)) {
    auto joined = JoinParts(content->list());
    if (!joined.ok()) return joined;
    out.Set(Text("content"), *std::move(joined));
  } else if (!content->is(Kind::kString) && !content->none()) {
    return absl::InvalidArgumentError("has content that is not text");
  }
  const Value* calls = out.Find("tool_calls");
  if (calls != nullptr && calls->is(Kind::kList)) {
    std::vector<Value> read;
    for (const Value& call : calls->list()) read.push_back(ReadArguments(call));
    out.Set(Text("tool_calls"), Given::OfList(std::move(read)));
  }
  Value value = Given::OfDict(std::move(out));
  // The message and its arguments were each within the limit, but together they may exceed it.
  if (value.height() >= jinja::kMaxHeight) return absl::InvalidArgumentError("is nested too deep");
  return value;
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

absl::StatusOr<std::vector<int32_t>> EncodeChat(const Tokenizer& tokenizer, const jinja::Text& text,
                                                bool at_start) {
  std::vector<size_t> cuts = FindCuts(tokenizer, text);
  cuts.push_back(text.size());
  std::vector<int32_t> tokens;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    const std::string_view run = std::string_view(text.bytes()).substr(begin, cut - begin);
    const auto ids = tokenizer.Encode(
        run, {.add_special = false, .parse_special = true, .at_start = at_start && begin == 0});
    if (!ids.ok()) return ids.status();
    tokens.insert(tokens.end(), ids->begin(), ids->end());
    begin = cut;
  }
  // Many templates write the BOS themselves.
  if (at_start && tokenizer.adds_bos() && (tokens.empty() || tokens[0] != tokenizer.bos())) {
    tokens.insert(tokens.begin(), tokenizer.bos());
  }
  return tokens;
}

Value ChatMessage(std::string_view role, std::string_view content) {
  Dict message;
  message.Set(Text("role"), Value::String(role, true));
  message.Set(Text("content"), Value::String(content, true));
  return Given::OfDict(std::move(message));
}

absl::StatusOr<Value> NormalizeMessages(const Value& messages) {
  if (!messages.is(Kind::kList)) return absl::InvalidArgumentError("the messages are no array");
  std::vector<Value> out;
  for (const Value& message : messages.list()) {
    auto normal = NormalizeMessage(message);
    if (!normal.ok()) return Invalid("message ", out.size() + 1, " ", normal.status().message());
    out.push_back(*std::move(normal));
  }
  return Given::OfList(std::move(out));
}

absl::StatusOr<Value> ParseMessages(std::string_view json) {
  const auto messages = jinja::ParseJson(json, "the messages");
  if (!messages.ok()) return messages;
  return NormalizeMessages(*messages);
}

absl::StatusOr<Value> ParseTools(std::string_view json) {
  auto tools = jinja::ParseJson(json, "the tools");
  if (tools.ok() && !tools->is(Kind::kList)) {
    return absl::InvalidArgumentError("the tools are no array");
  }
  return tools;
}

absl::StatusOr<jinja::Variables> ParseVariables(std::string_view json) {
  const auto object = jinja::ParseJson(json, "the template's variables");
  if (!object.ok()) return object.status();
  if (!object->is(Kind::kDict)) {
    return absl::InvalidArgumentError("the template's variables are no object");
  }
  jinja::Variables variables;
  for (const Dict::Entry& entry : object->dict().entries()) {
    variables.emplace_back(entry.key.bytes(), entry.value);
  }
  return variables;
}

}  // namespace trine
