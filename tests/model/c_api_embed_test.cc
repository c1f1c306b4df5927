// Tests embeddings through libtrine.so: the C call, and the C++ header over it.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/c_api_codes.h"
#include "tests/model/temp_file.h"
#include "tests/model/tiny_model.h"
#include "trine/trine.hpp"

namespace trine {
namespace {

using ::testing::HasSubstr;

class CApiEmbedTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = std::make_unique<TempFile>(MakeTinyModel(*TinyModelByName("llama")).ToBytes());
    engine_ = Open(TRINE_ENGINE_EMBEDDINGS);
    ASSERT_NE(engine_, nullptr);
  }
  std::unique_ptr<api::Engine> Open(uint32_t flags) {
    trine_engine_options options{};
    options.model = file_->path().c_str();
    options.flags = flags;
    options.context = 64;
    options.threads = 1;
    auto engine = api::Engine::Open(options);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return engine.ok() ? std::make_unique<api::Engine>(std::move(*engine)) : nullptr;
  }
  // Embeds two texts with the given options and room.
  int32_t Embed(const trine_embed_options* options, size_t capacity) {
    const int32_t* texts[] = {a_, b_};
    const size_t lengths[] = {3, 2};
    values_.assign(capacity, -77.0f);
    why_ = {};
    why_.struct_size = sizeof(why_);
    return trine_embed(engine_->get(), texts, lengths, 2, options, values_.data(), capacity,
                       &n_values_, &why_);
  }

  const int32_t a_[3] = {10, 20, 30};
  const int32_t b_[2] = {40, 50};
  std::unique_ptr<TempFile> file_;
  std::unique_ptr<api::Engine> engine_;
  std::vector<float> values_;
  size_t n_values_ = 0;
  trine_failure why_{};
};

TEST_F(CApiEmbedTest, GivesAVectorPerText) {
  const auto width = static_cast<size_t>(engine_->info().n_embd);
  EXPECT_EQ(width, 96u);
  ASSERT_EQ(Embed(nullptr, 2 * width), 0) << why_.message;
  EXPECT_EQ(n_values_, 2 * width);
  for (const size_t at : {size_t{0}, width}) {
    double squares = 0;
    for (size_t i = at; i < at + width; ++i) squares += values_[i] * values_[i];
    EXPECT_NEAR(squares, 1.0, 1e-5);
  }
  const auto vectors = engine_->Embed({{10, 20, 30}, {40, 50}});
  ASSERT_TRUE(vectors.ok()) << vectors.status().message();
  EXPECT_EQ((*vectors)[0], std::vector<float>(values_.begin(), values_.begin() + 96));
  EXPECT_EQ((*vectors)[1], std::vector<float>(values_.begin() + 96, values_.end()));
}

TEST_F(CApiEmbedTest, PoolingAndNormAreAsAskedFor) {
  const auto embed = [&](uint32_t pooling, int32_t normalize) {
    auto vectors = engine_->Embed({{10, 20, 30}, {40, 50}}, {pooling, normalize});
    EXPECT_TRUE(vectors.ok()) << vectors.status().message();
    return *vectors;
  };
  const auto rows = embed(TRINE_POOLING_NONE, TRINE_NORMALIZE_NONE);
  ASSERT_EQ(rows[0].size(), 3u * 96);
  ASSERT_EQ(rows[1].size(), 2u * 96);
  const auto mean = embed(TRINE_POOLING_MEAN, TRINE_NORMALIZE_NONE);
  const auto cls = embed(TRINE_POOLING_CLS, TRINE_NORMALIZE_NONE);
  const auto last = embed(TRINE_POOLING_LAST, TRINE_NORMALIZE_NONE);
  float largest = 0, sum = 0;
  for (size_t i = 0; i < 96; ++i) {
    EXPECT_EQ(cls[1][i], rows[1][i]);
    EXPECT_EQ(last[1][i], rows[1][96 + i]);
    EXPECT_NEAR(mean[1][i], (rows[1][i] + rows[1][96 + i]) / 2, 1e-6);
    largest = std::max(largest, std::abs(last[1][i]));
    sum += std::abs(last[1][i]);
  }
  EXPECT_EQ(embed(TRINE_POOLING_DEFAULT, TRINE_NORMALIZE_NONE), last);
  EXPECT_EQ(embed(TRINE_POOLING_LAST, TRINE_NORMALIZE_DEFAULT),
            embed(TRINE_POOLING_LAST, TRINE_NORMALIZE_EUCLIDEAN));
  EXPECT_NEAR(embed(TRINE_POOLING_LAST, TRINE_NORMALIZE_MAX)[1][7], last[1][7] / largest * 32760,
              0.05);
  EXPECT_NEAR(embed(TRINE_POOLING_LAST, 1)[1][7], last[1][7] / sum, 1e-6);
}

TEST_F(CApiEmbedTest, CountsBeforeItComputes) {
  trine_embed_options options{};
  options.struct_size = sizeof(options);
  options.pooling = TRINE_POOLING_NONE;
  options.on_progress = [](void*, int64_t, int64_t) -> int32_t {
    ADD_FAILURE() << "computed for want of room";
    return 0;
  };
  EXPECT_EQ(Embed(&options, 0), kOutOfRange);
  EXPECT_EQ(n_values_, 5u * 96);
  EXPECT_EQ(Embed(&options, 5 * 96 - 1), kOutOfRange);
  EXPECT_EQ(values_.back(), -77.0f);
  EXPECT_THAT(why_.message, HasSubstr("there are 480 values, the array holds 479"));
  options.on_progress = [](void*, int64_t, int64_t) -> int32_t { return 1; };
  EXPECT_EQ(Embed(&options, 5 * 96), kCancelled);
}

TEST_F(CApiEmbedTest, NonsenseIsRefused) {
  trine_embed_options options{};
  EXPECT_EQ(Embed(&options, 500), kInvalidArgument);
  options.struct_size = sizeof(options);
  options.pooling = 5;
  EXPECT_EQ(Embed(&options, 500), kInvalidArgument);
  options.pooling = 0;
  options.normalize = -3;
  EXPECT_EQ(Embed(&options, 500), kInvalidArgument);
  options.normalize = 33;
  EXPECT_EQ(Embed(&options, 500), kInvalidArgument);

  size_t n = 0;
  float value = 0;
  const int32_t* texts[] = {a_, nullptr};
  size_t lengths[] = {3, 2};
  EXPECT_EQ(trine_embed(nullptr, texts, lengths, 1, nullptr, &value, 1, &n, nullptr),
            kInvalidArgument);
  trine_engine* const engine = engine_->get();
  EXPECT_EQ(trine_embed(engine, nullptr, lengths, 1, nullptr, &value, 1, &n, nullptr),
            kInvalidArgument);
  EXPECT_EQ(trine_embed(engine, texts, nullptr, 1, nullptr, &value, 1, &n, nullptr),
            kInvalidArgument);
  EXPECT_EQ(trine_embed(engine, texts, lengths, 2, nullptr, &value, 1, &n, nullptr),
            kInvalidArgument);
  EXPECT_EQ(trine_embed(engine, texts, lengths, 1, nullptr, nullptr, 1, &n, nullptr),
            kInvalidArgument);
  EXPECT_EQ(trine_embed(engine, texts, lengths, 1, nullptr, &value, 1, nullptr, nullptr),
            kInvalidArgument);
  EXPECT_EQ(trine_embed(engine, texts, lengths, 0, nullptr, nullptr, 0, &n, nullptr), 0);
  EXPECT_EQ(n, 0u);
  EXPECT_EQ(engine_->Embed({{1}, {}}).status().code(), kInvalidArgument);
  EXPECT_EQ(engine_->Embed({{1}, {-4}}).status().code(), kInvalidArgument);
  const auto too_long = engine_->Embed({std::vector<int32_t>(65, 1)});
  EXPECT_EQ(too_long.status().code(), kOutOfRange);
  EXPECT_THAT(too_long.status().message(), HasSubstr("text 1 has 65 tokens, the context holds 64"));
  EXPECT_EQ(engine_->Embed({})->size(), 0u);
}

TEST_F(CApiEmbedTest, EachEngineDoesWhatItWasOpenedFor) {
  EXPECT_EQ(engine_->OpenSession().status().code(), kFailedPrecondition);
  const auto generating = Open(0);
  EXPECT_EQ(generating->Embed({{1}}).status().code(), kFailedPrecondition);
  EXPECT_TRUE(generating->OpenSession().ok());
}

}  // namespace
}  // namespace trine
