#include "tools/server/openai/plain_answers.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/server/openai/json.h"

namespace trine::server {
namespace {

std::string Base64(const std::vector<float>& vector) {
  std::string bytes;
  bytes.reserve(vector.size() * 4);
  for (const float value : vector) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(bits >> shift));
  }
  return absl::StrCat("\"", absl::Base64Escape(bytes), "\"");
}

// The library would write them as doubles, with twice the digits.
std::string Numbers(const std::vector<float>& vector) {
  std::string text = "[";
  for (const float value : vector) {
    if (text.size() > 1) text.push_back(',');
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value);
    text += std::isfinite(value) ? std::string_view(digits, end.ptr - digits) : "null";
  }
  return text + "]";
}

Json CardJson(const ModelCard& model) {
  Json meta = Json::object();
  meta["n_ctx"] = model.context_length;
  meta["n_vocab"] = model.vocab_size;
  meta["n_embd"] = model.embedding_size;
  meta["chat"] = model.chat;
  Json json = Json::object();
  json["id"] = model.id;
  json["object"] = "model";
  json["created"] = model.created;
  json["owned_by"] = "trine";
  json["meta"] = std::move(meta);
  return json;
}

Json PieceJson(const std::string& piece) {
  if (FindInvalidUtf8(piece) == piece.size()) return piece;
  Json bytes = Json::array();
  for (const char byte : piece) bytes.push_back(static_cast<uint8_t>(byte));
  return bytes;
}

}  // namespace

std::string EmbeddingsBody(std::span<const std::vector<float>> vectors, bool base64,
                           std::string_view model, int64_t prompt_tokens) {
  std::string data;
  for (size_t i = 0; i < vectors.size(); ++i) {
    absl::StrAppend(&data, i == 0 ? "" : ",", R"({"object":"embedding","index":)", i,
                    R"(,"embedding":)", base64 ? Base64(vectors[i]) : Numbers(vectors[i]), "}");
  }
  const Json usage{{"prompt_tokens", prompt_tokens}, {"total_tokens", prompt_tokens}};
  return absl::StrCat(R"({"object":"list","data":[)", data, R"(],"model":)", Dump(Json(model)),
                      R"(,"usage":)", Dump(usage), "}");
}

std::string ModelsBody(std::span<const ModelCard> models) {
  Json data = Json::array();
  for (const ModelCard& model : models) data.push_back(CardJson(model));
  Json json = Json::object();
  json["object"] = "list";
  json["data"] = std::move(data);
  return Dump(json);
}

std::string ModelBody(const ModelCard& model) { return Dump(CardJson(model)); }

std::string TokenizeBody(std::span<const int32_t> tokens, std::span<const std::string> pieces) {
  Json list = Json::array();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i < pieces.size()) {
      list.push_back(Json{{"id", tokens[i]}, {"piece", PieceJson(pieces[i])}});
    } else {
      list.push_back(tokens[i]);
    }
  }
  Json json = Json::object();
  json["tokens"] = std::move(list);
  json["count"] = tokens.size();
  return Dump(json);
}

std::string DetokenizeBody(std::string_view text) {
  Json json = Json::object();
  json["content"] = text;
  return Dump(json);
}

}  // namespace trine::server
