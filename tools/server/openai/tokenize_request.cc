#include "tools/server/openai/tokenize_request.h"

#include "tools/server/openai/field.h"
#include "tools/server/openai/prompt_fields.h"

namespace trine::server {

absl::StatusOr<TokenizeRequest> ParseTokenizeRequest(std::string_view body) {
  absl::StatusOr<Json> document = ParseRequest(body);
  if (!document.ok()) return document.status();
  absl::Status error;
  const Field root(*document, &error);
  TokenizeRequest request;
  const Field prompt = root["prompt"];
  const Field text = prompt.present() && !root["content"].present() ? prompt : root["content"];
  if (text.Require()) text.Get(&request.text);
  root["add_special"].Get(&request.add_special);
  root["parse_special"].Get(&request.parse_special);
  root["with_pieces"].Get(&request.with_pieces);
  if (!error.ok()) return error;
  return request;
}

absl::StatusOr<DetokenizeRequest> ParseDetokenizeRequest(std::string_view body,
                                                         int32_t vocab_size) {
  absl::StatusOr<Json> document = ParseRequest(body);
  if (!document.ok()) return document.status();
  absl::Status error;
  const Field root(*document, &error);
  DetokenizeRequest request;
  const Field tokens = root["tokens"];
  const bool none = tokens.is_array() && tokens.json().empty();
  if (tokens.Require() && !none) request.tokens = ReadTokens(tokens, vocab_size);
  if (!error.ok()) return error;
  return request;
}

}  // namespace trine::server
