// Tests embeddings: the rows are the model's, the vectors what the contract makes of them, and both
// are the same however the texts are run.
#include "runtime/engine/embed.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <thread>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "runtime/engine/generate.h"
#include "runtime/engine/perplexity.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

// Makes different texts of several lengths, up to more than a block of the cache.
std::vector<std::vector<int32_t>> SomeTexts(size_t n, int64_t n_vocab) {
  std::vector<std::vector<int32_t>> texts(n);
  uint32_t state = 99;
  for (size_t i = 0; i < n; ++i) {
    const size_t lengths[] = {1, 9, 64, 65, 3, 150, 30};
    for (size_t k = 0; k < lengths[i % 7]; ++k) {
      state = state * 1664525u + 1013904223u;
      texts[i].push_back(static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(n_vocab)));
    }
  }
  return texts;
}

std::vector<std::vector<float>> EmbedAll(Engine* engine,
                                         const std::vector<std::vector<int32_t>>& texts,
                                         const EmbedOptions& options = {}) {
  const std::vector<TokenSpan> spans(texts.begin(), texts.end());
  auto vectors = Embed(engine, spans, options);
  EXPECT_TRUE(vectors.ok()) << vectors.status();
  if (vectors.ok()) return *std::move(vectors);
  const auto width = static_cast<size_t>(engine->config().n_embd);
  return std::vector<std::vector<float>>(texts.size(), std::vector<float>(width));
}

EmbedOptions With(Pooling pooling, int32_t normalize) {
  EmbedOptions options;
  options.pooling = pooling;
  options.normalize = normalize;
  return options;
}

EngineOptions EmbedEngine(const std::string& model) {
  EngineOptions options = TestOptions(model);
  options.embeddings = true;
  options.max_sequences = 4;
  options.threads = 1;
  return options;
}

// With an output matrix whose first rows are those of the identity, the first logits are the hidden
// state itself.
TinyModel ModelThatShowsItsHiddenState(const TinyModelSpec& spec) {
  TinyModel model = MakeTinyModel(spec);
  const std::vector<gguf::Builder::Tensor>& tensors = model.builder.tensors();
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].name != "output.weight") continue;
    std::fill(model.data[t].begin(), model.data[t].end(), std::byte{0});
    for (int64_t i = 0; i < spec.n_embd; ++i) {
      const float one = 1.0f;
      std::memcpy(model.data[t].data() + (i * spec.n_embd + i) * 4, &one, 4);
    }
  }
  return model;
}

TEST(EmbedTest, TheRowsAreTheModelsHiddenStates) {
  for (const char* name : {"llama", "qwen2"}) {
    const TinyModelSpec spec = *TinyModelByName(name);
    const TempFile file(ModelThatShowsItsHiddenState(spec).ToBytes());
    const auto generating = MustLoad(TestOptions(file.path()));
    const auto embedding = MustLoad(EmbedEngine(file.path()));
    const auto width = static_cast<size_t>(spec.n_embd);
    const auto texts = SomeTexts(7, TinyVocabularySize());
    const auto all = EmbedAll(embedding.get(), texts, With(Pooling::kNone, kNormalizeNone));
    const auto mean = EmbedAll(embedding.get(), texts, With(Pooling::kMean, kNormalizeNone));
    const auto cls = EmbedAll(embedding.get(), texts, With(Pooling::kCls, kNormalizeNone));
    const auto last = EmbedAll(embedding.get(), texts, With(Pooling::kLast, kNormalizeNone));
    const auto unit = EmbedAll(embedding.get(), texts, With(Pooling::kMean, 2));
    for (size_t i = 0; i < texts.size(); ++i) {
      std::vector<float> rows;
      std::vector<double> sums(width, 0.0);
      for (const std::vector<float>& row : AllLogits(generating.get(), texts[i])) {
        rows.insert(rows.end(), row.begin(), row.begin() + static_cast<ptrdiff_t>(width));
        for (size_t k = 0; k < width; ++k) sums[k] += static_cast<double>(row[k]);
      }
      EXPECT_EQ(all[i], rows) << name << " text " << i;
      EXPECT_EQ(cls[i], std::vector<float>(rows.begin(), rows.begin() + spec.n_embd));
      EXPECT_EQ(last[i], std::vector<float>(rows.end() - spec.n_embd, rows.end()));
      double squares = 0;
      for (double& x : sums) {
        x /= static_cast<double>(texts[i].size());
        squares += x * x;
      }
      double length = 0;
      for (size_t k = 0; k < width; ++k) {
        EXPECT_EQ(mean[i][k], static_cast<float>(sums[k]));
        EXPECT_NEAR(unit[i][k], sums[k] / std::sqrt(squares), 1e-7);
        length += static_cast<double>(unit[i][k]) * static_cast<double>(unit[i][k]);
      }
      EXPECT_NEAR(length, 1.0, 1e-6);
    }
  }
}

TEST(EmbedTest, NothingAboutTheRunShows) {
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast, Pooling::kNone}) {
    const TempFile file(MakeTinyModel(*TinyModelByName("llama-q8")).ToBytes());
    const auto texts = SomeTexts(11, TinyVocabularySize());
    const EmbedOptions how = With(pooling, kNormalizeEuclidean);
    const auto want = EmbedAll(MustLoad(EmbedEngine(file.path())).get(), texts, how);
    const auto expect_same = [&](const char* what, const std::function<void(EngineOptions*)>& set) {
      EngineOptions options = EmbedEngine(file.path());
      set(&options);
      EXPECT_EQ(EmbedAll(MustLoad(options).get(), texts, how), want) << what;
    };
    expect_same("batch 1", [](EngineOptions* o) { o->batch_tokens = 1, o->max_sequences = 1; });
    expect_same("batch 7", [](EngineOptions* o) { o->batch_tokens = 7; });
    expect_same("batch 64", [](EngineOptions* o) { o->batch_tokens = 64; });
    expect_same("alone", [](EngineOptions* o) { o->max_sequences = 1; });
    expect_same("all at once", [](EngineOptions* o) { o->max_sequences = 32; });
    expect_same("3 threads", [](EngineOptions* o) { o->threads = 3; });
    expect_same("a split", [](EngineOptions* o) { o->placement.split = SplitOf("cpu:1,cpu:2"); });
    expect_same("a short context", [](EngineOptions* o) { o->context = 150; });
  }
}

TEST(EmbedTest, ThreadsShareTheCacheAndGetTheirOwnVectors) {
  const TempFile file(MakeTinyModel(*TinyModelByName("qwen3")).ToBytes());
  EngineOptions options = EmbedEngine(file.path());
  options.context = 192;  // three blocks, four with max_sequences: far from enough for all at once
  const auto engine = MustLoad(options);
  const auto texts = SomeTexts(14, TinyVocabularySize());
  const auto want = EmbedAll(engine.get(), texts);
  std::vector<std::vector<std::vector<float>>> got(4);
  std::vector<std::thread> threads;
  for (auto& mine : got) threads.emplace_back([&] { mine = EmbedAll(engine.get(), texts); });
  for (std::thread& t : threads) t.join();
  for (const auto& mine : got) EXPECT_EQ(mine, want);
}

// An engine that also generates gives the same vectors, on any placement.
TEST(EmbedTest, VectorsBesideGenerationAreTheSame) {
  const TempFile file(MakeTinyModel(*TinyModelByName("llama-q8")).ToBytes());
  const auto texts = SomeTexts(11, TinyVocabularySize());
  EngineOptions options = EmbedEngine(file.path());
  const auto alone = MustLoad(options);
  options.embeddings = false;
  const std::string text_hash = HashOf(MustLoad(options).get(), texts[5]);
  options.hidden_rows = true;
  options.context = 192;
  options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
  struct Placement {
    const char* split;
    SplitMode mode;
  };
  for (const Placement& p :
       {Placement{"cpu:100%", SplitMode::kLayer}, Placement{"cpu:1,several0:2", SplitMode::kLayer},
        Placement{"several1:3,cpu:2,several0:4", SplitMode::kRow}}) {
    options.placement.split = SplitOf(p.split);
    options.placement.mode = p.mode;
    const auto both = MustLoad(options);
    ASSERT_NE(both, nullptr);
    for (const Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
      const EmbedOptions how = With(pooling, kNormalizeEuclidean);
      const auto want = EmbedAll(alone.get(), texts, how);
      std::vector<std::vector<std::vector<float>>> got(2);
      std::vector<std::thread> threads;
      for (auto& mine : got) threads.emplace_back([&] { mine = EmbedAll(both.get(), texts, how); });
      EXPECT_EQ(HashOf(both.get(), texts[5]), text_hash) << p.split;
      for (std::thread& t : threads) t.join();
      for (const auto& mine : got) EXPECT_EQ(mine, want) << p.split << PoolingName(pooling);
    }
  }
}

TEST(EmbedTest, WhoeverIsNotWantedAnyMoreEndsBetweenPasses) {
  const TempFile file(MakeTinyModel(*TinyModelByName("llama-q8")).ToBytes());
  for (const bool beside : {false, true}) {
    EngineOptions options = EmbedEngine(file.path());
    options.embeddings = !beside;
    options.hidden_rows = beside;
    options.batch_tokens = 8;
    const auto engine = MustLoad(options);
    std::atomic<int> asked = 0;
    EmbedOptions how = With(Pooling::kLast, kNormalizeEuclidean);
    how.wanted = [&] { return ++asked < 3; };
    const std::vector<int32_t> text = SomeTexts(6, TinyVocabularySize())[5];
    const TokenSpan spans[] = {text};
    EXPECT_TRUE(absl::IsCancelled(Embed(engine.get(), spans, how).status()));
    EXPECT_EQ(asked, 3);
    how.wanted = nullptr;
    EXPECT_TRUE(Embed(engine.get(), spans, how).ok());
  }
}

// The shipped model's vectors, on every machine. They change only with the numerics version.
TEST(EmbedTest, TheShippedModelsVectorsArePinned) {
  const auto engine = MustLoad(EmbedEngine(ShippedModel()));
  ASSERT_NE(engine, nullptr);
  for (const auto& [pooling, pinned] : std::vector<std::pair<Pooling, uint64_t>>{
           {Pooling::kMean, 0x3ef4f01699561876u}, {Pooling::kLast, 0x8fa20a8af1b68255u}}) {
    uint64_t hash = 0xcbf29ce484222325ull;
    for (const std::vector<float>& vector :
         EmbedAll(engine.get(), SomeTexts(7, 8000), With(pooling, kNormalizeEuclidean))) {
      for (const float x : vector) hash = (hash ^ std::bit_cast<uint32_t>(x)) * 0x100000001b3ull;
    }
    EXPECT_EQ(hash, pinned) << PoolingName(pooling);
  }
}

// Compares with llama.cpp's vectors of the same tokens, which rounds elsewhere: close, not equal.
TEST(EmbedTest, TheVectorsAreCloseToThoseOfLlamaCpp) {
  const auto cases =
      nlohmann::json::parse(std::ifstream(TRINE_GOLDEN_FOLDER "/embeddings.json"), nullptr, false);
  ASSERT_TRUE(cases.is_array());
  ASSERT_GT(cases.size(), 10u);
  for (const auto& c : cases) {
    const std::string name = c["model"];
    std::unique_ptr<TempFile> file;
    if (const auto spec = TinyModelByName(name); spec.ok()) {
      file = std::make_unique<TempFile>(MakeTinyModel(*spec).ToBytes());
    }
    const auto engine = MustLoad(EmbedEngine(file == nullptr ? ShippedModel() : file->path()));
    const auto want = c["vector"].get<std::vector<float>>();
    const Pooling pooling = *ParsePooling(c["pooling"]);
    const std::vector<float> got =
        EmbedAll(engine.get(), {c["tokens"].get<std::vector<int32_t>>()}, With(pooling, 2))[0];
    ASSERT_EQ(got.size(), want.size());
    double largest = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      largest = std::max(largest, static_cast<double>(std::abs(got[i] - want[i])));
    }
    const double cosine = CosineSimilarity(got, want);
    std::printf("  %s, %s: cosine %.7f, largest difference %.1e\n", name.c_str(),
                PoolingName(pooling), cosine, largest);
    const bool quantised = name.find("q8") != std::string::npos;
    EXPECT_GT(cosine, quantised ? 0.9995 : 0.999999) << name;
    EXPECT_LT(largest, quantised ? 1e-2 : 1e-3) << name;
  }
}

TEST(EmbedTest, TheFileSaysHowToPool) {
  const auto pooling_of = [](uint32_t type) {
    TinyModel model = MakeTinyModel(*TinyModelByName("llama"));
    if (type != 99) model.builder.SetUint32("llama.pooling_type", type);
    const TempFile file(model.ToBytes());
    return DefaultPooling(*MustLoad(EmbedEngine(file.path())));
  };
  EXPECT_EQ(*pooling_of(0), Pooling::kNone);
  EXPECT_EQ(*pooling_of(1), Pooling::kMean);
  EXPECT_EQ(*pooling_of(2), Pooling::kCls);
  EXPECT_EQ(*pooling_of(3), Pooling::kLast);
  EXPECT_EQ(*pooling_of(99), Pooling::kLast);
  EXPECT_EQ(pooling_of(4).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(pooling_of(5).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(EmbedTest, BidirectionalModelsAreRefused) {
  TinyModel model = MakeTinyModel(*TinyModelByName("llama"));
  model.builder.SetBool("llama.attention.causal", false);
  const TempFile file(model.ToBytes());
  const auto engine = Engine::Load(EmbedEngine(file.path()));
  EXPECT_EQ(engine.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(engine.status().message()), HasSubstr("llama.attention.causal"));
}

TEST(EmbedTest, WhatCanNotBeEmbeddedIsSaidBeforeAnythingIsComputed) {
  const TempFile file(MakeTinyModel(*TinyModelByName("llama")).ToBytes());
  EngineOptions options = EmbedEngine(file.path());
  options.context = 32;
  const auto engine = MustLoad(options);
  bool called = false;
  const auto message = [&](const std::vector<std::vector<int32_t>>& texts) {
    const std::vector<TokenSpan> spans(texts.begin(), texts.end());
    EmbedOptions how;
    how.on_progress = [&](int64_t, int64_t) { return called = true; };
    const auto vectors = Embed(engine.get(), spans, how);
    return vectors.ok() ? std::string("accepted") : std::string(vectors.status().message());
  };
  EXPECT_EQ(message({{1}, {}}), "text 2 is empty: there is nothing to embed");
  EXPECT_EQ(message({{1}, {2}, std::vector<int32_t>(33, 5)}),
            "text 3 has 33 tokens, the context holds 32");
  EXPECT_THAT(message({{1, -1}}), HasSubstr("token -1 is not in the vocabulary"));
  EXPECT_THAT(message({{1, 100000}}), HasSubstr("text 1: token 100000"));
  EXPECT_FALSE(called);
  EXPECT_EQ(message({std::vector<int32_t>(32, 5)}), "accepted");
  EXPECT_TRUE(EmbedAll(engine.get(), {}).empty());
  const std::vector<int32_t> one = {1};
  const TokenSpan spans[] = {one};
  EXPECT_EQ(Embed(engine.get(), spans, With(Pooling::kMean, 33)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(EmbedTest, TheCallerCanEndIt) {
  const TempFile file(MakeTinyModel(*TinyModelByName("llama")).ToBytes());
  EngineOptions engine_options = EmbedEngine(file.path());
  engine_options.max_sequences = 2;
  const auto engine = MustLoad(engine_options);
  const auto texts = SomeTexts(7, TinyVocabularySize());
  const std::vector<TokenSpan> spans(texts.begin(), texts.end());
  EmbedOptions options;
  int64_t seen = 0;
  options.on_progress = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 7);
    EXPECT_GT(done, seen);
    seen = done;
    return done < 4;
  };
  EXPECT_EQ(Embed(engine.get(), spans, options).status().code(), absl::StatusCode::kCancelled);
  EXPECT_LT(seen, 7);
  // Blocks of the cache are given back, already while the callback runs.
  options.on_progress = [&](int64_t, int64_t) {
    return EmbedAll(engine.get(), {std::vector<int32_t>(256, 3)}).size() == 1;
  };
  EXPECT_TRUE(Embed(engine.get(), spans, options).ok());
  EXPECT_EQ(EmbedAll(engine.get(), texts).size(), 7u);
}

TEST(EmbedTest, EachEngineDoesWhatItWasOpenedFor) {
  const TempFile file(MakeTinyModel(*TinyModelByName("llama")).ToBytes());
  const auto embedding = MustLoad(EmbedEngine(file.path()));
  EXPECT_EQ(Session::Create(embedding.get(), {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const std::vector<int32_t> tokens(300, 7);
  EXPECT_EQ(MeasurePerplexity(embedding.get(), tokens, 1).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const auto generating = MustLoad(TestOptions(file.path()));
  const TokenSpan spans[] = {TokenSpan(tokens).first(3)};
  EXPECT_EQ(Embed(generating.get(), spans).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(EmbedTest, OneContextOfCacheServesManyTexts) {
  const TempFile file(MakeTinyModel(*TinyModelByName("llama")).ToBytes());
  EngineOptions options = EmbedEngine(file.path());
  options.max_sequences = 1;
  const auto one = MustLoad(options);
  options.max_sequences = 4;  // of 256 positions: four blocks
  const auto four = MustLoad(options);
  EXPECT_EQ(one->model()->kv_bytes(), four->model()->kv_bytes());
  options.max_sequences = 8;
  EXPECT_EQ(MustLoad(options)->model()->kv_bytes(), 2 * four->model()->kv_bytes());
}

}  // namespace
}  // namespace trine
