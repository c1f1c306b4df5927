// Vectors on standard output, in the forms people know from other engines. Numbers are written with
// the fewest digits that read back as the same binary32.
#ifndef TRINE_TOOLS_CLI_EMBEDDING_WRITER_H_
#define TRINE_TOOLS_CLI_EMBEDDING_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace trine {

enum class EmbeddingFormat {
  kArray,     // [[...], [...]]
  kJson,      // {"object": "list", "data": [{"object": "embedding", "index": 0, ...}]}
  kJsonPlus,  // the same with the cosine similarity of every text with every other
  kRaw        // numbers apart by spaces, a line for each vector
};

// Vectors by text, as they come. Keeps none of them but for kJsonPlus.
class EmbeddingWriter {
 public:
  // A text has a vector of `width` values or, where `per_token`, several behind one another.
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

#endif  // TRINE_TOOLS_CLI_EMBEDDING_WRITER_H_
