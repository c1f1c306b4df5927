#include "tools/server/openai/answers/plain_answers.h"

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

// The library would write doubles, with twice the digits.
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
  return Json{{"id", model.id},
              {"object", "model"},
              {"created", model.created},
              {"owned_by", "trine"},
              {"meta", Json{{"n_ctx", model.context_length},
                            {"n_vocab", model.vocab_size},
                            {"n_embd", model.embedding_size},
                            {"chat", model.chat}}}};
}

Json PieceJson(const std::string& piece) {
  if (FindInvalidUtf8(piece) == piece.size()) return piece;
  Json bytes = Json::array();
  for (const char byte : piece) bytes.push_back(static_cast<uint8_t>(byte));
  return bytes;
}

Json CardJson(const SessionCard& card) {
  Json checkpoints = Json::array();
  for (const SessionCard::Checkpoint& c : card.checkpoints) {
    checkpoints.push_back({{"t", c.t}, {"tokens", c.tokens}});
  }
  Json json{{"id", card.id},
            {"object", "session"},
            {"created", card.created},
            {"model", card.model},
            {"seed", card.seed},
            {"tokens", card.tokens},
            {"checkpoints", std::move(checkpoints)},
            {"busy", card.busy},
            {"expires_in", card.idle_seconds_left}};
  if (card.text) {
    json["text"] = *card.text;
    json["token_ids"] = card.token_ids;
  }
  return json;
}

template <class Card>
std::string ListBody(std::span<const Card> cards) {
  Json data = Json::array();
  for (const Card& card : cards) data.push_back(CardJson(card));
  return Dump(Json{{"object", "list"}, {"data", std::move(data)}});
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

std::string ModelsBody(std::span<const ModelCard> models) { return ListBody(models); }

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
  return Dump(Json{{"tokens", std::move(list)}, {"count", tokens.size()}});
}

std::string DetokenizeBody(std::string_view text) { return Dump(Json{{"content", text}}); }

std::string SessionBody(const SessionCard& card) { return Dump(CardJson(card)); }

std::string SessionsBody(std::span<const SessionCard> cards) { return ListBody(cards); }

std::string CheckpointBody(int64_t t, int64_t tokens) {
  return Dump(Json{{"object", "session.checkpoint"}, {"t", t}, {"tokens", tokens}});
}

std::string DeletedBody(std::string_view id, std::string_view object) {
  return Dump(Json{{"id", id}, {"object", object}, {"deleted", true}});
}

}  // namespace trine::server
