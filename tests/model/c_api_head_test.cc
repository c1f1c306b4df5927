// Tests heads through libtrine.so: choosing, log-odds, reranking, and refusals.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/head/head_file.h"
#include "runtime/head/test_head.h"
#include "runtime/head/train_head.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/model/arch/read_model.h"
#include "tests/model/c_api_codes.h"
#include "tests/model/temp_file.h"
#include "tests/model/tiny_model.h"
#include "trine/trine.hpp"

namespace trine {
namespace {

using ::testing::HasSubstr;

class CApiHeadTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = std::make_unique<TempFile>(MakeTinyModel(*TinyModelByName("llama")).ToBytes());
    engine_ = Open(TRINE_ENGINE_HIDDEN_ROWS);
    ASSERT_NE(engine_, nullptr);
    label_ = MakeHead(HeadKind::kLabel);
    branch_ = MakeHead(HeadKind::kBranch);
    label_file_ = Write(label_);
    branch_file_ = Write(branch_);
  }
  std::unique_ptr<api::Engine> Open(uint32_t flags, int64_t branches = 8) {
    trine_engine_options options{};
    options.model = file_->path().c_str();
    options.flags = flags;
    options.context = 128;
    options.threads = 1;
    options.branches = branches;
    auto engine = api::Engine::Open(options);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return engine.ok() ? std::make_unique<api::Engine>(std::move(*engine)) : nullptr;
  }
  Head MakeHead(HeadKind kind) const {
    const auto file = gguf::File::Open(file_->path());
    Head head = TestHead();
    head.kind = kind;
    if (kind == HeadKind::kBranch) head.labels.clear();
    head.model = IdentityOf(**file, *ReadModelConfig(**file));
    head.linear = {};
    Noise noise(5);
    for (int64_t i = 0; i < head.model.n_embd; ++i) {
      head.linear.mean.push_back(0.01 * noise.Next());
      head.linear.scale.push_back(1.5 + noise.Next());
      head.linear.weights.push_back(noise.Next());
    }
    return head;
  }
  static std::unique_ptr<TempFile> Write(const Head& head) {
    const std::string text = *FormatHead(head);
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    return std::make_unique<TempFile>(std::vector<std::byte>(bytes, bytes + text.size()));
  }
  api::Head MustOpen(const api::Engine& engine, const TempFile& file) {
    auto head = engine.OpenHead(file.path());
    EXPECT_TRUE(head.ok()) << head.status().message();
    return std::move(*head);
  }
  // Returns the last rows of texts, with the call for embeddings.
  std::vector<std::vector<float>> Rows(const std::vector<std::string>& texts) {
    std::vector<std::vector<int32_t>> tokens;
    for (const std::string& text : texts) {
      tokens.push_back(*engine_->Tokenize(text, TRINE_TOKENIZE_PARSE_SPECIAL));
    }
    auto rows = engine_->Embed(tokens, {TRINE_POOLING_LAST, TRINE_NORMALIZE_NONE});
    EXPECT_TRUE(rows.ok()) << rows.status().message();
    return *rows;
  }
  static std::vector<int32_t> Generated(const api::Engine& engine,
                                        const std::optional<trine_rerank_options>& rerank,
                                        int64_t count, trine_generate_result* result) {
    trine_sampler_options sampler;
    trine_sampler_options_init(&sampler, sizeof(sampler));
    sampler.temperature = 0;
    trine_session_options options{};
    options.sampler = &sampler;
    options.flags = TRINE_SESSION_IGNORE_END;
    auto session = engine.OpenSession(options);
    EXPECT_TRUE(session.ok());
    EXPECT_TRUE(session->Append({10, 20, 30}).ok());
    api::GenerateOptions generate;
    generate.max_tokens = count;
    generate.rerank = rerank;
    auto got = session->Generate(generate);
    EXPECT_TRUE(got.ok()) << got.status().message();
    if (got.ok() && result != nullptr) *result = *got;
    return session->tokens();
  }

  std::unique_ptr<TempFile> file_;
  std::unique_ptr<api::Engine> engine_;
  Head label_, branch_;
  std::unique_ptr<TempFile> label_file_, branch_file_;
};

TEST_F(CApiHeadTest, SaysWhatItIs) {
  const trine_head_info label = MustOpen(*engine_, *label_file_).info();
  EXPECT_EQ(label.kind, static_cast<uint32_t>(TRINE_HEAD_LABEL));
  EXPECT_EQ(label.chat, 0u);
  EXPECT_STREQ(label.labels[0], "A");
  EXPECT_STREQ(label.labels[1], "B");
  const api::Head branch = MustOpen(*engine_, *branch_file_);
  EXPECT_EQ(branch.info().kind, static_cast<uint32_t>(TRINE_HEAD_BRANCH));
  EXPECT_STREQ(branch.info().labels[0], "");
  trine_head_info shorter{};  // an older caller's: nothing behind it is written
  shorter.struct_size = 8;
  shorter.chat = 77;
  EXPECT_EQ(trine_head_describe(branch.get(), &shorter), 0);
  EXPECT_EQ(shorter.kind, static_cast<uint32_t>(TRINE_HEAD_BRANCH));
  EXPECT_EQ(shorter.chat, 77u);
  shorter.struct_size = 0;
  EXPECT_EQ(trine_head_describe(branch.get(), &shorter), kInvalidArgument);
}

TEST_F(CApiHeadTest, ChoosesAsItsRowsSay) {
  const std::vector<std::string> texts = {"once upon", "a time there", "was a fox"};
  const std::vector<std::vector<float>> rows = Rows(texts);
  const api::Head branch = MustOpen(*engine_, *branch_file_);
  const auto best = branch.Choose(texts);
  ASSERT_TRUE(best.ok()) << best.status().message();
  EXPECT_EQ(best->probabilities, AnswerProbabilities(branch_, rows));
  EXPECT_EQ(best->best, BestAnswer(best->probabilities));
  const api::Head label = MustOpen(*engine_, *label_file_);
  const auto one = label.Choose({texts[1]});
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_EQ(one->probabilities, AnswerProbabilities(label_, std::span(rows).subspan(1, 1)));

  EXPECT_EQ(label.Choose(texts).status().code(), kFailedPrecondition);
  EXPECT_EQ(branch.Choose({texts[0]}).status().code(), kFailedPrecondition);
  EXPECT_EQ(branch.Choose({}).status().code(), kFailedPrecondition);
  const char* pointers[] = {"one", "two"};
  const size_t lengths[] = {3, 3};
  size_t which = 9;
  double probability = 0;
  EXPECT_EQ(trine_head_choose(branch.get(), pointers, lengths, 2, &which, nullptr, 0, nullptr), 0);
  EXPECT_LT(which, 2u);
  EXPECT_EQ(trine_head_choose(branch.get(), pointers, lengths, 2, &which, &probability, 1, nullptr),
            kOutOfRange);
  EXPECT_EQ(trine_head_choose(branch.get(), pointers, nullptr, 2, &which, nullptr, 0, nullptr),
            kInvalidArgument);
  EXPECT_EQ(trine_head_choose(nullptr, pointers, lengths, 2, &which, nullptr, 0, nullptr),
            kInvalidArgument);
}

TEST_F(CApiHeadTest, ValuesTheTextOfASession) {
  const api::Head head = MustOpen(*engine_, *label_file_);
  auto session = engine_->OpenSession();
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(session->HeadValue(head).status().code(), kFailedPrecondition) << "there is no token";
  ASSERT_TRUE(session->AppendText("once upon").ok());
  ASSERT_TRUE(session->Evaluate().ok());
  const auto t = session->Checkpoint();
  ASSERT_TRUE(t.ok());
  const double first = label_.linear.LogOdds(Rows({"once upon"})[0]);
  EXPECT_EQ(*session->HeadValue(head), first);
  ASSERT_TRUE(session->AppendText(" a time", TRINE_TOKENIZE_NO_SPECIAL).ok());
  const auto rows = engine_->Embed({session->tokens()}, {TRINE_POOLING_LAST, TRINE_NORMALIZE_NONE});
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(*session->HeadValue(head), label_.linear.LogOdds((*rows)[0]));
  ASSERT_TRUE(session->Regress(*t).ok());
  EXPECT_EQ(*session->HeadValue(head), first);
}

TEST_F(CApiHeadTest, RerankedTextIsAsTheLogOddsSay) {
  const api::Head head = MustOpen(*engine_, *label_file_);
  trine_generate_result result{};
  const std::vector<int32_t> plain = Generated(*engine_, std::nullopt, 12, nullptr);
  const std::vector<int32_t> got = Generated(*engine_, head.Rerank(4, 2.0), 12, &result);
  EXPECT_EQ(result.rerank_candidates, 4 * 12);
  EXPECT_GT(result.rerank_ms, 0);
  EXPECT_NE(got, plain);
  // Compute each token by hand: four texts, their log-odds, and the best sum.
  for (size_t n = 3; n < got.size(); ++n) {
    const std::vector<int32_t> before(got.begin(), got.begin() + static_cast<ptrdiff_t>(n));
    auto session = engine_->OpenSession();
    ASSERT_TRUE(session->Append(before).ok());
    ASSERT_TRUE(session->Evaluate().ok());
    const float* logits = session->logits();
    std::vector<int32_t> order;
    for (int32_t i = 0; i < engine_->info().n_vocab; ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
    int32_t best = -1;
    float best_logit = 0;
    for (size_t k = 0; k < 4; ++k) {
      std::vector<int32_t> with = before;
      with.push_back(order[k]);
      auto text = engine_->OpenSession();
      ASSERT_TRUE(text->Append(with).ok());
      const double s = std::min(std::max(*text->HeadValue(head), -10.0), 10.0);
      const auto logit = static_cast<float>(static_cast<double>(logits[order[k]]) + 2.0 * s);
      if (best >= 0 && logit <= best_logit) continue;
      best = order[k];
      best_logit = logit;
    }
    EXPECT_EQ(got[n], best) << n;
  }
}

TEST_F(CApiHeadTest, WhatCannotBeIsSaid) {
  const auto refusal = [&](const api::Engine& engine, const std::string& path) {
    return engine.OpenHead(path).status();
  };
  EXPECT_EQ(refusal(*engine_, "/nowhere").code(), kNotFound);
  EXPECT_EQ(refusal(*engine_, file_->path()).code(), kInvalidArgument);
  Head other = label_;
  other.model.hash ^= 1;
  const auto other_file = Write(other);
  EXPECT_EQ(refusal(*engine_, other_file->path()).code(), kFailedPrecondition);
  EXPECT_THAT(refusal(*engine_, other_file->path()).message(), HasSubstr("another model"));
  const auto plain = Open(0);
  EXPECT_EQ(refusal(*plain, label_file_->path()).code(), kFailedPrecondition);
  trine_head* none = nullptr;
  EXPECT_EQ(trine_head_open(nullptr, "x", &none, nullptr), kInvalidArgument);
  EXPECT_EQ(trine_head_open(engine_->get(), nullptr, &none, nullptr), kInvalidArgument);
  trine_head_close(nullptr);

  // A head can choose on an engine for embeddings, which has no sessions.
  const auto embeds = Open(TRINE_ENGINE_EMBEDDINGS, 0);
  EXPECT_TRUE(MustOpen(*embeds, *branch_file_).Choose({"a", "b"}).ok());

  const api::Head head = MustOpen(*engine_, *label_file_);
  auto session = engine_->OpenSession();
  ASSERT_TRUE(session->Append({10, 20}).ok());
  const auto refused = [&](trine_rerank_options options) {
    api::GenerateOptions generate;
    generate.rerank = options;
    return session->Generate(generate).status();
  };
  EXPECT_THAT(refused(head.Rerank(65)).message(), HasSubstr("1 to 64"));
  EXPECT_THAT(refused(head.Rerank(-1)).message(), HasSubstr("1 to 64"));
  EXPECT_THAT(refused(head.Rerank(9)).message(), HasSubstr("no room to read 9"));
  trine_rerank_options options = head.Rerank();
  options.limit = -1;
  EXPECT_EQ(refused(options).code(), kInvalidArgument);
  options = head.Rerank();
  options.head = nullptr;
  EXPECT_EQ(refused(options).code(), kInvalidArgument);
  options = head.Rerank();
  options.struct_size = 0;
  EXPECT_EQ(refused(options).code(), kInvalidArgument);
  const auto second = Open(TRINE_ENGINE_HIDDEN_ROWS);
  const api::Head elsewhere = MustOpen(*second, *label_file_);
  EXPECT_THAT(refused(elsewhere.Rerank()).message(), HasSubstr("another engine"));
  EXPECT_EQ(session->HeadValue(elsewhere).status().code(), kInvalidArgument);
}

}  // namespace
}  // namespace trine
