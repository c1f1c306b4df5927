#include "tools/server/openai/session_answers.h"

#include <utility>

#include "tools/server/openai/json.h"

namespace trine::server {
namespace {

Json CardJson(const SessionCard& card) {
  Json json = Json::object();
  json["id"] = card.id;
  json["object"] = "session";
  json["created"] = card.created;
  json["model"] = card.model;
  json["seed"] = card.seed;
  json["tokens"] = card.tokens;
  json["checkpoints"] = Json::array();
  for (const SessionCard::Checkpoint& c : card.checkpoints) {
    json["checkpoints"].push_back({{"t", c.t}, {"tokens", c.tokens}});
  }
  json["busy"] = card.busy;
  json["expires_in"] = card.idle_seconds_left;
  if (card.text) {
    json["text"] = *card.text;
    json["token_ids"] = card.token_ids;
  }
  return json;
}

}  // namespace

std::string SessionBody(const SessionCard& card) { return Dump(CardJson(card)); }

std::string SessionsBody(std::span<const SessionCard> cards) {
  Json json = Json::object();
  json["object"] = "list";
  json["data"] = Json::array();
  for (const SessionCard& card : cards) json["data"].push_back(CardJson(card));
  return Dump(json);
}

std::string CheckpointBody(int64_t t, int64_t tokens) {
  Json json = Json::object();
  json["object"] = "session.checkpoint";
  json["t"] = t;
  json["tokens"] = tokens;
  return Dump(json);
}

std::string DeletedBody(std::string_view id, std::string_view object) {
  Json json = Json::object();
  json["id"] = id;
  json["object"] = object;
  json["deleted"] = true;
  return Dump(json);
}

}  // namespace trine::server
