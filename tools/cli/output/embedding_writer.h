// Writes vectors to standard output in forms that other engines use. Numbers have the fewest digits
// that read back as the same binary32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace trine {

enum class EmbeddingFormat {
  kArray,     // [[...], [...]]
  kJson,      // {"object": "list", "data": [{"object": "embedding", "index": 0, ...}]}
  kJsonPlus,  // kJson with the cosine similarity of every two texts
  kRaw        // numbers separated by spaces, a line for each vector
};

// Writes the vectors of texts as they come. Keeps them only for kJsonPlus.
class EmbeddingWriter {
 public:
  // A text has one vector of `width` values or, if `per_token`, one vector for each token, one
  // after the other.
  EmbeddingWriter(std::FILE* out, EmbeddingFormat format, size_t width, bool per_token)
      : out_(out), format_(format), width_(width), per_token_(per_token) {}

  void Add(std::vector<float> text);
  void Finish(int64_t prompt_tokens);

 private:
  bool object() const {
    return format_ == EmbeddingFormat::kJson || format_ == EmbeddingFormat::kJsonPlus;
  }
  void Write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), out_); }
  void WriteSimilarities();

  std::FILE* out_;
  EmbeddingFormat format_;
  size_t width_;
  bool per_token_;
  size_t texts_ = 0;
  std::vector<std::vector<float>> kept_;
};

}  // namespace trine
