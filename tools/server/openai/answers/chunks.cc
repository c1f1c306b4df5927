#include "tools/server/openai/answers/chunks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/server/openai/api_error.h"
#include "tools/server/openai/ids.h"

namespace trine::server {
namespace {

Json HeadJson(const AnswerHead& head, const char* object) {
  return Json{
      {"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
}

Json UsageJson(const Usage& usage) {
  return Json{{"prompt_tokens", usage.prompt_tokens},
              {"completion_tokens", usage.completion_tokens},
              {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
              {"prompt_tokens_details", Json{{"cached_tokens", usage.cached_tokens}}}};
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

const char* FinishReasonText(AnswerEnd end) { return end == AnswerEnd::kStop ? "stop" : "length"; }

ChunkWriter::ChunkWriter(const GenerationRequest& request, AnswerHead head, const char* chunk,
                         const char* whole, size_t choices)
    : logprobs_(request.top_logprobs >= 0),
      head_(std::move(head)),
      whole_(whole),
      n_choices_(choices),
      include_usage_(request.include_usage),
      begin_(Dump(HeadJson(head_, chunk))) {
  begin_.back() = ',';  // replaces the closing brace
  begin_ += "\"choices\":[";
}

void ChunkWriter::Send(const Json& choice, Frames* frames) const {
  if (frames == nullptr) return;
  frames->Data(absl::StrCat(begin_, Dump(choice), include_usage_ ? R"(],"usage":null})" : "]}"));
}

std::vector<TokenInfo> ChunkWriter::TakePending(Choice* choice, const Frames* frames) {
  std::vector<TokenInfo> taken = std::exchange(choice->pending, {});
  if (frames == nullptr) {
    choice->tokens.insert(choice->tokens.end(), taken.begin(), taken.end());
  }
  return taken;
}

void ChunkWriter::End(const Usage& usage, Frames* frames) {
  if (frames == nullptr) return;
  if (include_usage_) {
    frames->Data(absl::StrCat(begin_, "],\"usage\":", Dump(UsageJson(usage)), "}"));
  }
  frames->Done();
}

void ChunkWriter::Fail(const absl::Status& status, Frames* frames) {
  if (frames != nullptr) frames->Data(ErrorBody(status));
}

std::string ChunkWriter::Body(const Usage& usage) {
  Json json = HeadJson(head_, whole_);
  json["choices"] = Json::array();
  for (size_t i = 0; i < n_choices_; ++i) json["choices"].push_back(WholeChoice(i));
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
