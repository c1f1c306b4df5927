#include "tools/server/openai/logprobs_json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/tokenizer/utf8.h"

namespace trine::server {
namespace {

// JSON has no infinity. This is what others write for a token that can't come.
double Finite(double logprob) { return std::isfinite(logprob) ? logprob : -9999.0; }

Json ChanceJson(std::string_view bytes, std::optional<double> logprob) {
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<uint8_t>(byte));
  Json json = Json::object();
  json["token"] = bytes;  // Dump mends it where it is no text
  json["logprob"] = logprob.has_value() ? Json(Finite(*logprob)) : Json();
  json["bytes"] = std::move(list);
  return json;
}

std::string TokenText(std::string_view bytes) {
  if (FindInvalidUtf8(bytes) == bytes.size()) return std::string(bytes);
  std::string text = "bytes:";
  for (const char byte : bytes) {
    absl::StrAppendFormat(&text, "\\x%02x", static_cast<uint8_t>(byte));
  }
  return text;
}

// Bytes that begin a character. So a character counts once, however tokens share it.
int64_t Characters(std::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
}

}  // namespace

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
      // Two tokens may read the same: the better one stands first.
      const std::string text = TokenText(chance.bytes);
      if (!top.contains(text)) top[text] = Finite(chance.logprob);
    }
    // The one that came is told of too, though better ones fill the list.
    if (const std::string text = TokenText(token.bytes); top.is_object() && !top.contains(text)) {
      top[text] = Finite(*token.logprob);
    }
    tops.push_back(std::move(top));
    offsets.push_back(*offset);
    *offset += Characters(token.bytes);
  }
  Json json = Json::object();
  json["tokens"] = std::move(texts);
  json["token_logprobs"] = std::move(logprobs);
  json["top_logprobs"] = std::move(tops);
  json["text_offset"] = std::move(offsets);
  return json;
}

}  // namespace trine::server
