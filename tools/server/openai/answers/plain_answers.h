// Writes the answers of endpoints that generate nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trine::server {

// Returns the body of POST /v1/embeddings. Writes numbers with the fewest digits that read back as
// the same binary32, or, if `base64` is true, the little-endian binary32 values in base64.
std::string EmbeddingsBody(std::span<const std::vector<float>> vectors, bool base64,
                           std::string_view model, int64_t prompt_tokens);

struct ModelCard {
  std::string id;
  int64_t created = 0;  // seconds since 1970
  int64_t context_length = 0;
  int64_t vocab_size = 0;
  int64_t embedding_size = 0;
  bool chat = true;  // true: the model has a chat template
};

// Return the body of GET /v1/models, and the description of one model.
std::string ModelsBody(std::span<const ModelCard> models);
std::string ModelBody(const ModelCard& model);

// Returns the body of POST /tokenize. `pieces` has each token's bytes, or nothing if the request
// does not ask for them. Writes a piece that is not UTF-8 as a list of bytes.
std::string TokenizeBody(std::span<const int32_t> tokens, std::span<const std::string> pieces);
// Returns the body of POST /detokenize.
std::string DetokenizeBody(std::string_view text);

// The description of a session in the answers of /v1/sessions.
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
  bool busy = false;              // true: a request is in progress; the numbers are from before it
  int64_t idle_seconds_left = 0;  // the time until the session is closed, if it is not used
  // These are set only if the request asks for them.
  std::optional<std::string> text;
  std::vector<int32_t> token_ids;
};

std::string SessionBody(const SessionCard& card);
std::string SessionsBody(std::span<const SessionCard> cards);
std::string CheckpointBody(int64_t t, int64_t tokens);
// Returns the answer to the removal of a session, or of a checkpoint, whose id is
// "ID/checkpoints/T".
std::string DeletedBody(std::string_view id, std::string_view object);

}  // namespace trine::server
