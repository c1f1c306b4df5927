#include "tools/cli/output/embedding_writer.h"

#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/embedding/pooling.h"

namespace trine {
namespace {

template <class T>
void AppendNumber(T x, std::string* out) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), x);
  out->append(digits, end.ptr);
}

template <class T>
std::string Joined(std::span<const T> values, const char* between) {
  std::string out;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out += between;
    AppendNumber(values[i], &out);
  }
  return out;
}

}  // namespace

void EmbeddingWriter::Add(std::vector<float> text) {
  std::string vectors;
  for (size_t at = 0; at + width_ <= text.size(); at += width_) {
    const auto one = std::span<const float>(text).subspan(at, width_);
    if (format_ == EmbeddingFormat::kRaw) {
      absl::StrAppend(&vectors, Joined(one, " "), "\n");
    } else {
      absl::StrAppend(&vectors, at == 0 ? "" : ",", "[", Joined(one, ","), "]");
    }
  }
  if (format_ == EmbeddingFormat::kRaw) return Write(vectors);
  if (per_token_) vectors = absl::StrCat("[", vectors, "]");
  if (object()) {
    vectors = absl::StrCat("{\"object\": \"embedding\", \"index\": ", texts_,
                           ", \"embedding\": ", vectors, "}");
  }
  const char* const opening = object() ? "{\"object\": \"list\", \"data\": [\n" : "[";
  Write(absl::StrCat(texts_ == 0 ? opening : ",\n", vectors));
  ++texts_;
  if (format_ == EmbeddingFormat::kJsonPlus) kept_.push_back(std::move(text));
}

void EmbeddingWriter::Finish(int64_t prompt_tokens) {
  if (format_ == EmbeddingFormat::kRaw) return;
  if (format_ == EmbeddingFormat::kArray) return Write("]\n");
  Write("\n]");
  if (format_ == EmbeddingFormat::kJsonPlus) WriteSimilarities();
  Write(absl::StrCat(",\n\"usage\": {\"prompt_tokens\": ", prompt_tokens,
                     ", \"total_tokens\": ", prompt_tokens, "}}\n"));
}

// Writes row by row, because the matrix of many texts takes much memory.
void EmbeddingWriter::WriteSimilarities() {
  Write(",\n\"cosineSimilarity\": [\n");
  std::vector<double> row(kept_.size());
  for (size_t i = 0; i < kept_.size(); ++i) {
    for (size_t j = 0; j < kept_.size(); ++j) row[j] = CosineSimilarity(kept_[i], kept_[j]);
    Write(absl::StrCat(i == 0 ? "" : ",\n", "[", Joined<double>(row, ","), "]"));
  }
  Write("\n]");
}

}  // namespace trine
