// Tests a head on the shipped model: how well it does with goals and subjects that it was not
// trained with, how well simpler means do, and that nothing leaks.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/engine/branch_choice_head.h"
#include "runtime/head/head.h"
#include "runtime/head/head_file.h"
#include "runtime/head/test_head.h"
#include "runtime/head/train_head.h"
#include "tests/head/branch_examples.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

constexpr int kPairs = 14;

EngineOptions HeadEngine(uint32_t threads = 0) {
  EngineOptions options = TestOptions(ShippedModel());
  options.hidden_rows = true;
  options.context = 256;
  options.threads = threads;
  return options;
}

HeadData Read(Engine* engine, HeadData data, PromptForm form = PromptForm::kChat) {
  const absl::Status s = ReadRows(engine, form, &data);
  EXPECT_TRUE(s.ok()) << s;
  return data;
}

TrainedHead Train(const HeadData& data, const ModelIdentity& model,
                  PromptForm form = PromptForm::kChat) {
  TrainOptions options;
  options.form = form;
  options.hold_out = 0;
  auto trained = TrainHead(data, model, options);
  EXPECT_TRUE(trained.ok()) << trained.status();
  return *std::move(trained);
}

HeadReport Evaluate(const Head& head, const HeadData& data) {
  std::vector<size_t> all(data.examples.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return EvaluateHead(head, data, all);
}

void Print(const char* what, const HeadReport& r) {
  std::printf("%-34s %lld of %lld, %.1f %% (95 %%: %.1f to %.1f), swaps %lld of %lld\n", what,
              static_cast<long long>(r.correct), static_cast<long long>(r.examples),
              100 * r.Accuracy(), 100 * r.accuracy.low, 100 * r.accuracy.high,
              static_cast<long long>(r.swaps_followed), static_cast<long long>(r.swaps));
}

// Replaces rows by counts of a text's tokens, which hold nothing of their order.
void UseTokenCounts(const Engine& engine, HeadData* data) {
  for (Example& example : data->examples) {
    const auto tokens = EncodePrompt(engine, example.texts[0], PromptForm::kChat);
    ASSERT_TRUE(tokens.ok());
    example.rows[0].assign(example.rows[0].size(), 0.0f);
    for (const int32_t token : *tokens) {
      example.rows[0][static_cast<size_t>(token) % example.rows[0].size()] += 1.0f;
    }
  }
}

void UseNoise(uint64_t seed, HeadData* data) {
  Noise noise(seed);
  for (Example& example : data->examples) {
    for (float& x : example.rows[0]) x = static_cast<float>(noise.Next());
  }
}

// Swaps the labels A and B in half of the pairs, chosen anew by each seed.
HeadData Shuffled(HeadData data, uint64_t seed) {
  Noise noise(seed);
  const size_t pairs = data.examples.size() / 2;
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < pairs; ++i) order.emplace_back(noise.Next(), i);
  std::sort(order.begin(), order.end());
  for (size_t k = 0; k < pairs / 2; ++k) {
    const size_t i = order[k].second;
    std::swap(data.examples[2 * i].label, data.examples[2 * i + 1].label);
  }
  return data;
}

// Counts how often the model itself finds the right one of "A" and "B" likelier as the next token.
int64_t NextTokenRight(Engine* engine, const HeadData& data) {
  const auto a = engine->tokenizer()->Encode("A", {}), b = engine->tokenizer()->Encode("B", {});
  EXPECT_EQ(a->size(), 1u);
  EXPECT_EQ(b->size(), 1u);
  int64_t right = 0;
  for (const Example& example : data.examples) {
    const auto tokens = EncodePrompt(*engine, example.texts[0], PromptForm::kChat);
    EXPECT_TRUE(tokens.ok());
    const std::unique_ptr<Sequence> sequence = engine->NewSequence();
    EXPECT_TRUE(sequence->Append(*tokens).ok());
    Sequence* const one[] = {sequence.get()};
    EXPECT_TRUE(engine->Evaluate(one).ok());
    const std::span<const float> logits = sequence->logits();
    const bool says_b = logits[static_cast<size_t>((*b)[0])] > logits[static_cast<size_t>((*a)[0])];
    right += says_b == (example.label == "B");
  }
  return right;
}

std::set<std::string> Words(const std::vector<const char*>& texts) {
  std::set<std::string> words;
  for (const std::string text : texts) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(' ', begin), text.size());
      words.insert(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  words.erase("the");
  words.erase("a");
  return words;
}

std::set<std::string> Nouns(const BranchWords& w) {
  std::vector<const char*> texts = w.subjects;
  for (const BranchWords::Goal& goal : w.goals) {
    texts.push_back(goal.name);
    texts.push_back(goal.elsewhere);
  }
  return Words(texts);
}

TEST(BranchExamplesTest, WhatIsHeldOutIsNotTrainedWith) {
  const std::set<std::string> trained = Nouns(TrainingWords());
  for (const std::string& word : Nouns(HeldOutWords()))
    EXPECT_FALSE(trained.contains(word)) << word;
  for (const std::string verb : HeldOutVerbs().toward) {
    for (const char* known : TrainingWords().toward) EXPECT_NE(verb, known);
  }
}

TEST(BranchExamplesTest, AreBalancedTwinsAndAllDifferent) {
  for (const BranchWords& words : {TrainingWords(), HeldOutWords(), HeldOutVerbs()}) {
    for (const BranchFamily family :
         {BranchFamily::kAway, BranchFamily::kElsewhere, BranchFamily::kBoth}) {
      const HeadData data = LabelExamples(words, family, kPairs);
      const auto back = ParseHeadData(ToJsonLines(data));
      ASSERT_TRUE(back.ok()) << back.status();
      std::set<std::string> texts;
      for (size_t i = 0; i < data.examples.size(); ++i) {
        EXPECT_EQ(data.examples[i].label, i % 2 == 0 ? "A" : "B");
        EXPECT_EQ(data.examples[i].group, data.examples[i ^ 1].group);
        EXPECT_EQ(back->examples[i].texts, data.examples[i].texts);
        texts.insert(data.examples[i].texts[0]);
      }
      EXPECT_EQ(texts.size(), data.examples.size());
    }
  }
}

TEST(BranchChoiceTest, ChoosesBetweenBranchesItHasNotSeen) {
  const auto engine = MustLoad(HeadEngine());
  ASSERT_NE(engine, nullptr);
  const ModelIdentity model = IdentityOf(*engine);
  const HeadData train =
      Read(engine.get(), LabelExamples(TrainingWords(), BranchFamily::kBoth, kPairs));
  const HeadData held_out =
      Read(engine.get(), LabelExamples(HeldOutWords(), BranchFamily::kBoth, kPairs));
  const TrainedHead trained = Train(train, model);

  // Check the bar.
  const HeadReport report = Evaluate(trained.head, held_out);
  Print("held out", report);
  EXPECT_GT(report.Accuracy(), 0.90);
  EXPECT_EQ(report.MajorityShare(), 0.5);
  EXPECT_GT(report.accuracy.low, report.MajorityShare());
  // Twins are not two independent answers. Count pairs in which both are right.
  int64_t pairs_right = 0;
  for (size_t i = 0; i < held_out.examples.size(); i += 2) {
    const auto says_b = [&](size_t k) {
      return trained.head.linear.LogOdds(held_out.examples[k].rows[0]) > 0;
    };
    pairs_right += !says_b(i) && says_b(i + 1);
  }
  std::printf("  pairs with both right: %lld of %lld\n", static_cast<long long>(pairs_right),
              static_cast<long long>(report.swaps));
  EXPECT_GT(WilsonInterval(pairs_right, report.swaps).low, 0.75);

  const int64_t next = NextTokenRight(engine.get(), held_out);
  std::printf("the model's own A or B             %lld of %lld\n", static_cast<long long>(next),
              static_cast<long long>(report.examples));

  // A head that knows nothing of the order, or of the text, must be as good as a coin.
  HeadData train_other = train, held_out_other = held_out;
  UseTokenCounts(*engine, &train_other);
  UseTokenCounts(*engine, &held_out_other);
  const HeadReport counts = Evaluate(Train(train_other, model).head, held_out_other);
  Print("counts of tokens", counts);
  EXPECT_EQ(2 * counts.correct, counts.examples);
  UseNoise(1, &train_other);
  UseNoise(2, &held_out_other);
  const HeadReport noise = Evaluate(Train(train_other, model).head, held_out_other);
  Print("noise for rows", noise);
  EXPECT_LT(noise.accuracy.low, 0.5);
  EXPECT_GT(noise.accuracy.high, 0.5);

  // Only the labels say what is better: with wrong ones the head learns nothing. One shuffle may
  // lean to either side; several together don't.
  constexpr int kShuffles = 8;
  double mean = 0;
  for (uint64_t seed = 1; seed <= kShuffles; ++seed) {
    mean += Evaluate(Train(Shuffled(train, seed), model).head, held_out).Accuracy() / kShuffles;
  }
  std::printf("shuffled labels, mean of %d        %.1f %%\n", kShuffles, 100 * mean);
  EXPECT_GT(mean, 0.4);
  EXPECT_LT(mean, 0.6);
}

TEST(BranchChoiceTest, OneTextPerBranchDoesNotKnowOfOrder) {
  const auto engine = MustLoad(HeadEngine());
  ASSERT_NE(engine, nullptr);
  const HeadData train = Read(engine.get(), BranchExamples(TrainingWords(), BranchFamily::kAway, 4),
                              PromptForm::kPlain);
  const HeadData held_out = Read(
      engine.get(), BranchExamples(HeldOutWords(), BranchFamily::kAway, 4), PromptForm::kPlain);
  const TrainedHead trained = Train(train, IdentityOf(*engine), PromptForm::kPlain);
  const HeadReport report = Evaluate(trained.head, held_out);
  Print("branch by branch, away", report);
  EXPECT_GT(report.Accuracy(), 0.90);
  EXPECT_EQ(report.swaps, std::ssize(held_out.examples) / 2);
  EXPECT_EQ(report.swaps_followed, report.swaps);

  const auto chooser = BranchChoiceHead::Create(engine.get(), trained.head);
  ASSERT_TRUE(chooser.ok()) << chooser.status();
  const Example& example = held_out.examples[0];
  const auto three =
      chooser->ChooseBranch(std::vector{example.texts[1], example.texts[0], example.texts[1]});
  ASSERT_TRUE(three.ok()) << three.status();
  EXPECT_EQ(three->best, 1u);
  EXPECT_FALSE(chooser->ChooseBranch(std::vector{example.texts[0]}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(chooser->ChooseLabel("text").status()));

  // The same head rates a single text.
  const auto value = ValueHead::Create(IdentityOf(*engine), trained.head);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_GT(value->LogOdds(example.rows[0]), value->LogOdds(example.rows[1]));
}

// Threads, texts per pass and the way the engine was loaded change no byte of the file.
TEST(BranchChoiceTest, TheFileIsTheSameHoweverItIsTrained) {
  std::vector<std::string> files;
  for (const uint32_t threads : {1u, 2u}) {
    EngineOptions options = HeadEngine(threads);
    if (threads == 2) {
      options.hidden_rows = false;
      options.embeddings = true;
      options.max_sequences = 8;
      options.batch_tokens = 100;
    }
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    const HeadData data =
        Read(engine.get(), LabelExamples(TrainingWords(), BranchFamily::kAway, 1));
    files.push_back(*FormatHead(Train(data, IdentityOf(*engine)).head));
  }
  EXPECT_EQ(files[0], files[1]);
}

TEST(BranchChoiceTest, BadTextsAndOtherModelsAreRefused) {
  EngineOptions options = HeadEngine();
  options.context = 16;
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  HeadData data = LabelExamples(TrainingWords(), BranchFamily::kAway, 1);
  data.examples[0].texts = {"Once"};
  const absl::Status s = ReadRows(engine.get(), PromptForm::kPlain, &data);
  EXPECT_TRUE(absl::IsOutOfRange(s));
  EXPECT_THAT(std::string(s.message()), HasSubstr("line 2: a text has"));
  Head head = TestHead();
  EXPECT_TRUE(absl::IsFailedPrecondition(BranchChoiceHead::Create(engine.get(), head).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(ValueHead::Create(IdentityOf(*engine), head).status()));
}

TEST(BranchChoiceTest, CostsAreMeasured) {
  const auto engine = MustLoad(HeadEngine());
  ASSERT_NE(engine, nullptr);
  const auto cost = MeasureHeadCost(engine.get(), TestHead(), "Once upon a time");
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_GT(cost->token_ms, 0);
  EXPECT_GT(cost->head_us, 0);
}

}  // namespace
}  // namespace trine
