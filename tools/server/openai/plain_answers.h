// Answers of the endpoints that generate nothing.
#ifndef TRINE_TOOLS_SERVER_OPENAI_PLAIN_ANSWERS_H_
#define TRINE_TOOLS_SERVER_OPENAI_PLAIN_ANSWERS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trine::server {

// POST /v1/embeddings. Numbers have the fewest digits that read back as the same binary32; base64
// is of binary32 in little-endian order.
std::string EmbeddingsBody(std::span<const std::vector<float>> vectors, bool base64,
                           std::string_view model, int64_t prompt_tokens);

struct ModelCard {
  std::string id;
  int64_t created = 0;  // seconds since 1970
  int64_t context_length = 0;
  int64_t vocab_size = 0;
  int64_t embedding_size = 0;
  bool chat = true;  // it has a chat template
};

// GET /v1/models, and of one of them.
std::string ModelsBody(std::span<const ModelCard> models);
std::string ModelBody(const ModelCard& model);

// POST /tokenize. `pieces`, each token's bytes, is empty where they were not asked for; one that is
// no text is told as a list of bytes.
std::string TokenizeBody(std::span<const int32_t> tokens, std::span<const std::string> pieces);
// POST /detokenize.
std::string DetokenizeBody(std::string_view text);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_PLAIN_ANSWERS_H_
