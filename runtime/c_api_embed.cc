// Embeddings in the C API.
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/c_api_support.h"
#include "runtime/embed.h"

namespace trine::c_api {
namespace {

absl::StatusOr<Pooling> PoolingOf(uint32_t number, const Engine& engine) {
  switch (number) {
    case TRINE_POOLING_DEFAULT:
      return DefaultPooling(engine);
    case TRINE_POOLING_NONE:
      return Pooling::kNone;
    case TRINE_POOLING_MEAN:
      return Pooling::kMean;
    case TRINE_POOLING_CLS:
      return Pooling::kCls;
    case TRINE_POOLING_LAST:
      return Pooling::kLast;
  }
  return absl::InvalidArgumentError(absl::StrCat("pooling is ", number, ": 0 to 4"));
}

absl::StatusOr<int32_t> NormalizeOf(int32_t number) {
  if (number == TRINE_NORMALIZE_DEFAULT) return kNormalizeEuclidean;
  if (number == TRINE_NORMALIZE_MAX) return kNormalizeMax;
  if (number == TRINE_NORMALIZE_NONE) return kNormalizeNone;
  if (number >= 1 && number <= kLargestNorm) return number;
  return absl::InvalidArgumentError(
      absl::StrCat("normalize is ", number, ": -2 to ", kLargestNorm));
}

absl::StatusOr<EmbedOptions> MakeOptions(const trine_embed_options* given, const Engine& engine) {
  trine_embed_options read{};
  if (absl::Status s = ReadStruct("options", given, &read); !s.ok()) return s;
  EmbedOptions options;
  const auto pooling = PoolingOf(read.pooling, engine);
  if (!pooling.ok()) return pooling.status();
  options.pooling = *pooling;
  const auto normalize = NormalizeOf(read.normalize);
  if (!normalize.ok()) return normalize.status();
  options.normalize = *normalize;
  if (read.on_progress != nullptr) {
    options.on_progress = [call = read.on_progress, user = read.user](int64_t done, int64_t total) {
      return call(user, done, total) == 0;
    };
  }
  return options;
}

absl::StatusOr<std::vector<TokenSpan>> Texts(const int32_t* const* texts, const size_t* lengths,
                                             size_t count) {
  if (count != 0 && (texts == nullptr || lengths == nullptr)) {
    return NullArgument("texts or lengths");
  }
  std::vector<TokenSpan> spans;
  for (size_t i = 0; i < count; ++i) {
    if (texts[i] == nullptr && lengths[i] != 0) return NullArgument("a text");
    spans.emplace_back(texts[i], lengths[i]);
  }
  return spans;
}

}  // namespace
}  // namespace trine::c_api

extern "C" {

using namespace trine::c_api;  // NOLINT: this file is that namespace's other side

int32_t trine_embed(trine_engine* engine, const int32_t* const* texts, const size_t* lengths,
                    size_t count, const trine_embed_options* given, float* values, size_t capacity,
                    size_t* n_values, trine_failure* why) {
  return Guarded(why, [&]() -> absl::Status {
    if (n_values == nullptr) return NullArgument("n_values");
    *n_values = 0;
    if (engine == nullptr) return NullArgument("engine");
    if (values == nullptr && capacity != 0) return NullArgument("values");
    const auto options = MakeOptions(given, *engine->engine);
    if (!options.ok()) return options.status();
    const auto spans = Texts(texts, lengths, count);
    if (!spans.ok()) return spans.status();
    if (absl::Status s = trine::CheckTexts(*engine->engine, *spans); !s.ok()) return s;
    size_t rows = 0;
    for (const trine::TokenSpan& text : *spans) {
      rows += options->pooling == trine::Pooling::kNone ? text.size() : 1;
    }
    *n_values = rows * static_cast<size_t>(engine->engine->config().n_embd);
    if (*n_values > capacity) {
      return absl::OutOfRangeError(
          absl::StrCat("there are ", *n_values, " values, the array holds ", capacity));
    }
    const auto vectors = trine::Embed(engine->engine.get(), *spans, *options);
    if (!vectors.ok()) return vectors.status();
    for (const std::vector<float>& vector : *vectors) {
      values = std::copy(vector.begin(), vector.end(), values);
    }
    return absl::OkStatus();
  });
}

}  // extern "C"
