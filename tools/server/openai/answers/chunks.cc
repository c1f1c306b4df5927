#include "tools/server/openai/answers/chunks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/server/openai/ids.h"

namespace trine::server {
namespace {

Json HeadJson(const AnswerHead& head, const char* object) {
  return Json{
      {"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
}

// JSON has no infinity. -9999 is what other servers write for a token that can't come.
double Finite(double logprob) { return std::isfinite(logprob) ? logprob : -9999.0; }

Json ChanceJson(std::string_view bytes, std::optional<double> logprob) {
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<uint8_t>(byte));
  return Json{{"token", bytes},  // Dump replaces what is not UTF-8
              {"logprob", logprob.has_value() ? Json(Finite(*logprob)) : Json()},
              {"bytes", std::move(list)}};
}

std::string TokenText(std::string_view bytes) {
  if (FindInvalidUtf8(bytes) == bytes.size()) return std::string(bytes);
  std::string text = "bytes:";
  for (const char byte : bytes) absl::StrAppendFormat(&text, "\\x%02x", static_cast<uint8_t>(byte));
  return text;
}

// Counts the bytes that begin a character, so that a character that several tokens share counts
// once.
int64_t Characters(std::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
}

}  // namespace

AnswerHead NewAnswerHead(std::string_view prefix, std::string_view model) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.id = RandomId(prefix),
          .model = std::string(model),
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count()};
}

Json UsageJson(const Usage& usage) {
  return Json{{"prompt_tokens", usage.prompt_tokens},
              {"completion_tokens", usage.completion_tokens},
              {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
              {"prompt_tokens_details", Json{{"cached_tokens", usage.cached_tokens}}}};
}

const char* FinishReasonText(AnswerEnd end) { return end == AnswerEnd::kStop ? "stop" : "length"; }

Chunks::Chunks(const AnswerHead& head, const char* object, bool with_usage)
    : begin_(Dump(HeadJson(head, object))), end_(with_usage ? R"(],"usage":null})" : "]}") {
  begin_.back() = ',';  // replaces the closing brace
  begin_ += "\"choices\":[";
}

std::string Chunks::Of(const Json& choice) const {
  return absl::StrCat(begin_, Dump(choice), end_);
}

std::string Chunks::OfUsage(const Usage& usage) const {
  return absl::StrCat(begin_, "],\"usage\":", Dump(UsageJson(usage)), "}");
}

std::string WholeAnswer(const AnswerHead& head, const char* object, Json choices,
                        const Usage& usage) {
  Json json = HeadJson(head, object);
  json["choices"] = std::move(choices);
  json["usage"] = UsageJson(usage);
  return Dump(json);
}

Json ChatLogprobs(std::span<const TokenInfo> tokens) {
  Json list = Json::array();
  for (const TokenInfo& token : tokens) {
    Json json = ChanceJson(token.bytes, token.logprob);
    Json top = Json::array();
    for (const TokenChance& chance : token.top) {
      top.push_back(ChanceJson(chance.bytes, chance.logprob));
    }
    json["top_logprobs"] = std::move(top);
    list.push_back(std::move(json));
  }
  return list;
}

Json CompletionLogprobs(std::span<const TokenInfo> tokens, int64_t* offset) {
  Json texts = Json::array(), logprobs = Json::array(), tops = Json::array();
  Json offsets = Json::array();
  for (const TokenInfo& token : tokens) {
    texts.push_back(TokenText(token.bytes));
    logprobs.push_back(token.logprob.has_value() ? Json(Finite(*token.logprob)) : Json());
    Json top = token.logprob.has_value() ? Json::object() : Json();
    for (const TokenChance& chance : token.top) {
      // Two tokens may have the same text: the better one, which comes first, is kept.
      const std::string text = TokenText(chance.bytes);
      if (!top.contains(text)) top[text] = Finite(chance.logprob);
    }
    // The sampled token is included even if better ones fill the list.
    if (const std::string text = TokenText(token.bytes); top.is_object() && !top.contains(text)) {
      top[text] = Finite(*token.logprob);
    }
    tops.push_back(std::move(top));
    offsets.push_back(*offset);
    *offset += Characters(token.bytes);
  }
  return Json{{"tokens", std::move(texts)},
              {"token_logprobs", std::move(logprobs)},
              {"top_logprobs", std::move(tops)},
              {"text_offset", std::move(offsets)}};
}

}  // namespace trine::server
