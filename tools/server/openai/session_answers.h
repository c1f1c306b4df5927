// What /v1/sessions tells of sessions.
#ifndef TRINE_TOOLS_SERVER_OPENAI_SESSION_ANSWERS_H_
#define TRINE_TOOLS_SERVER_OPENAI_SESSION_ANSWERS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trine::server {

struct SessionCard {
  std::string id;
  std::string model;
  int64_t created = 0;  // seconds since 1970
  uint64_t seed = 0;
  int64_t tokens = 0;
  struct Checkpoint {
    int64_t t = 0;
    int64_t tokens = 0;
  };
  std::vector<Checkpoint> checkpoints;
  bool busy = false;              // a request is under way: figures are those from before it
  int64_t idle_seconds_left = 0;  // until it is closed
  // Where they were asked for.
  std::optional<std::string> text;
  std::vector<int32_t> token_ids;
};

std::string SessionBody(const SessionCard& card);
std::string SessionsBody(std::span<const SessionCard> cards);
std::string CheckpointBody(int64_t t, int64_t tokens);
// Of a session, or of a checkpoint, "ID/checkpoints/T".
std::string DeletedBody(std::string_view id, std::string_view object);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_SESSION_ANSWERS_H_
