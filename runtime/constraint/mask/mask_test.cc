// Compares masks with the plain way to make them: each token's bytes go through the automaton.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "runtime/constraint/mask/constraint.h"
#include "runtime/constraint/mask/constraint_test_util.h"
#include "runtime/gguf/gguf_file.h"

namespace trine {
namespace {

constexpr const char* kGrammars[] = {
    "root ::= \"ab\"* \"c\"",
    "root ::= (\"a\" | \"aa\" | \"ab\" | \"b\")* \"abc\"?",
    "root ::= \"{\" (pair (\", \" pair)*)? \"}\"\npair ::= \"\\\"\" [a-c]{1,5} \"\\\": \" value\n"
    "value ::= root | \"123\" | \"true\" | \"[\" (value (\",\" value)*)? \"]\"",
    "root ::= [^x]{3,40} \"x\"",
    "root ::= .{0,20}",
    "root ::= \"\xC3\xA9\"+ | \"\xF0\x9F\x98\x80\" root",
    "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\" root | \"\"",
};

constexpr const char* kSchemas[] = {
    "{}",
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},"age":{"type":)"
    R"("integer","minimum":0,"maximum":120}},"required":["name"],"additionalProperties":true})",
    R"({"type":"array","items":{"type":"string","minLength":3,"pattern":"^[a-c]+$"}})",
};

std::shared_ptr<const Tokenizer> LoadTokenizer(const std::string& path) {
  auto file = gguf::File::Open(path);
  if (!file.ok()) return nullptr;
  const auto data = ReadTokenizerData((*file)->metadata());
  if (!data.ok()) return nullptr;
  auto tokenizer = Tokenizer::Create(*data);
  return tokenizer.ok() ? *tokenizer : nullptr;
}

// Walks at random along allowed tokens, comparing masks for every token and several limits.
void CompareAlongWalk(const std::shared_ptr<const Constraint>& constraint, uint32_t seed, int steps,
                      int stride) {
  const Tokenizer& tokenizer = constraint->tokenizer();
  std::mt19937 random(seed);
  ConstraintState state(constraint);
  std::vector<uint32_t> mask(constraint->mask_words());
  for (int step = 0; step < steps; ++step) {
    for (const int64_t beyond : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{3}}) {
      const int64_t need = state.TokensToFinish();
      const int64_t left = beyond < 0 ? ConstraintState::kNoLimit : need + beyond;
      state.Mask(left, mask);
      bool any = false;
      for (int32_t id = static_cast<int32_t>(random() % static_cast<uint32_t>(stride));
           id < tokenizer.vocab_size(); id += stride) {
        ConstraintState after = state;
        const bool allowed = after.Accept(id).ok();
        const bool is_end = tokenizer.IsEndOfGeneration(id);
        const bool expected =
            allowed && (is_end || beyond < 0 || after.TokensToFinish() <= left - 1);
        ASSERT_EQ(IsSet(mask, id), expected) << "token " << id << " '" << tokenizer.TokenBytes(id)
                                             << "', left " << left << ", needed " << need;
        any = any || expected;
      }
      ASSERT_TRUE(any || stride > 1);
    }
    state.Mask(ConstraintState::kNoLimit, mask);
    std::vector<int32_t> choices;
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      if (IsSet(mask, id) && !tokenizer.IsEndOfGeneration(id)) choices.push_back(id);
    }
    if (choices.empty()) {
      ASSERT_TRUE(state.IsComplete());
      return;
    }
    ASSERT_TRUE(state.Accept(choices[random() % choices.size()]).ok());
  }
}

TEST(MaskTest, EqualsTheSlowWayOnASmallVocabulary) {
  const ConstraintVocabulary vocabulary = SmallVocabulary();
  for (uint32_t seed = 0; seed < 4; ++seed) {
    for (const char* grammar : kGrammars) {
      SCOPED_TRACE(grammar);
      CompareAlongWalk(MustMakeGbnf(grammar, vocabulary), seed, 30, 1);
    }
    for (const char* schema : kSchemas) {
      SCOPED_TRACE(schema);
      CompareAlongWalk(MustMakeSchema(schema, vocabulary), seed, 40, 1);
    }
  }
}

TEST(MaskTest, EqualsTheSlowWayOnRealVocabularies) {
  const char* named = std::getenv("TRINE_SHARED_DIR");
  const std::string shared = named != nullptr ? named : TRINE_SHARED_FOLDER;
  for (const std::string& path :
       {std::string(TRINE_SHIPPED_MODEL), shared + "/tokenizers/ggml-vocab-gpt-2.gguf",
        shared + "/tokenizers/ggml-vocab-llama-spm.gguf"}) {
    if (!std::filesystem::exists(path)) continue;
    SCOPED_TRACE(path);
    const auto tokenizer = LoadTokenizer(path);
    ASSERT_NE(tokenizer, nullptr);
    const ConstraintVocabulary vocabulary = ConstraintVocabulary::Of(tokenizer);
    for (const char* grammar : {kGrammars[2], kGrammars[4]}) {
      SCOPED_TRACE(grammar);
      CompareAlongWalk(MustMakeGbnf(grammar, vocabulary), 5, 6, 13);
    }
    for (const char* schema : kSchemas) {
      SCOPED_TRACE(schema);
      CompareAlongWalk(MustMakeSchema(schema, vocabulary), 5, 6, 13);
    }
  }
}

// Whatever tokens are drawn, the text is finished within any limit that can be kept.
TEST(MaskTest, ClosesInTime) {
  const ConstraintVocabulary vocabulary = SmallVocabulary();
  std::mt19937 random(3);
  std::vector<std::shared_ptr<const Constraint>> constraints;
  for (const char* grammar : kGrammars) constraints.push_back(MustMakeGbnf(grammar, vocabulary));
  for (const char* schema : kSchemas) constraints.push_back(MustMakeSchema(schema, vocabulary));
  for (const auto& constraint : constraints) {
    const Tokenizer& tokenizer = constraint->tokenizer();
    std::vector<uint32_t> mask(constraint->mask_words());
    for (int round = 0; round < 60; ++round) {
      ConstraintState state(constraint);
      int64_t left = state.TokensToFinish() + static_cast<int64_t>(random() % 30);
      for (; left > 0; --left) {
        state.Mask(left, mask);
        std::vector<int32_t> choices;
        for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
          if (IsSet(mask, id)) choices.push_back(id);
        }
        ASSERT_FALSE(choices.empty());
        const int32_t token = choices[random() % choices.size()];
        ASSERT_NE(tokenizer.TokenText(token), "<|control|>");
        ASSERT_TRUE(state.Accept(token).ok());
        if (state.ended()) break;
      }
      ASSERT_TRUE(state.IsComplete());
    }
  }
}

TEST(MaskTest, TooSmallALimitIsNoLimit) {
  const auto constraint = MustMakeGbnf("root ::= \"abcabcabc\"", SmallVocabulary());
  ConstraintState state(constraint);
  EXPECT_EQ(state.TokensToFinish(), 3);  // "abc" is a token
  std::vector<uint32_t> limited(constraint->mask_words()), free(constraint->mask_words());
  state.Mask(2, limited);
  state.Mask(ConstraintState::kNoLimit, free);
  EXPECT_EQ(limited, free);
  EXPECT_TRUE(IsSet(free, 'a'));
  state.Mask(3, limited);
  EXPECT_FALSE(IsSet(limited, 'a'));
}

// "name\":" is a token, but its parts are not.
TEST(MaskTest, PartsOfTokensDontFinishAnything) {
  const auto cost = [](const char* grammar) {
    return ConstraintState(MustMakeGbnf(grammar, SmallVocabulary())).TokensToFinish();
  };
  EXPECT_EQ(cost("root ::= \"nam\""), 3);
  EXPECT_EQ(cost("root ::= \"name\\\":\""), 1);
  EXPECT_EQ(cost("root ::= \"name\\\":\" | \"na\""), 1);
}

TEST(MaskTest, EndsOnlyWhereTheTextMayEnd) {
  const auto constraint = MustMakeGbnf("root ::= \"ab\" \"c\"?", SmallVocabulary());
  const int32_t end = constraint->tokenizer().eos();
  ConstraintState state(constraint);
  std::vector<uint32_t> mask(constraint->mask_words());
  state.Mask(ConstraintState::kNoLimit, mask);
  EXPECT_FALSE(IsSet(mask, end));
  EXPECT_FALSE(state.Accept(end).ok());
  ASSERT_TRUE(state.Accept('a').ok());
  ASSERT_TRUE(state.Accept('b').ok());
  EXPECT_FALSE(state.MustEnd());
  state.Mask(ConstraintState::kNoLimit, mask);
  EXPECT_TRUE(IsSet(mask, end));
  EXPECT_TRUE(IsSet(mask, 'c'));
  ConstraintState fork = state;
  ASSERT_TRUE(fork.Accept('c').ok());
  EXPECT_TRUE(fork.MustEnd());
  ASSERT_TRUE(state.Accept(end).ok());
  EXPECT_TRUE(state.ended());
  EXPECT_FALSE(state.Accept('c').ok());
  state.Mask(ConstraintState::kNoLimit, mask);
  for (const uint32_t word : mask) EXPECT_EQ(word, 0u);
}

// If a byte has no token, texts with it and prefixes that lead only to such texts are left out.
TEST(MaskTest, BytesWithoutATokenAreLeftOut) {
  TestVocabulary vocabulary = TestVocabulary::SentencePiece();
  TokenizerData& data = vocabulary.data();
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    if (data.tokens[id] == "<0x62>") data.types[id] = TokenType::kUnused;  // b
  }
  vocabulary.AddPiece("ab", -1);
  const ConstraintVocabulary ready = ConstraintVocabulary::Of(vocabulary.Create());
  const auto refused = Constraint::FromGbnf("root ::= \"ab\"", ready);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("255 of 256"), absl::string_view::npos)
      << refused.status();
  const auto constraint = MustMakeGbnf("root ::= \"ab\" | \"ac\" | \"bc\"", ready);
  ConstraintState state(constraint);
  std::vector<uint32_t> mask(constraint->mask_words());
  state.Mask(ConstraintState::kNoLimit, mask);
  int allowed = 0;
  for (int32_t id = 0; id < ready.tokenizer->vocab_size(); ++id) allowed += IsSet(mask, id) ? 1 : 0;
  EXPECT_EQ(allowed, 1);
}

TEST(MaskTest, NestedTooDeepItTurnsBack) {
  const auto constraint = MustMakeGbnf("root ::= \"[\" root \"]\" | \"x\"", SmallVocabulary());
  ConstraintState state(constraint);
  std::vector<uint32_t> mask(constraint->mask_words());
  int depth = 0;
  for (;; ++depth) {
    ASSERT_LT(depth, 100000);
    state.Mask(ConstraintState::kNoLimit, mask);
    if (!IsSet(mask, '[')) break;
    ASSERT_TRUE(state.Accept('[').ok());
  }
  EXPECT_GT(depth, 500);
  EXPECT_TRUE(IsSet(mask, 'x'));
  ASSERT_TRUE(state.Accept('x').ok());
  for (int i = 0; i < depth; ++i) ASSERT_TRUE(state.Accept(']').ok());
  EXPECT_TRUE(state.MustEnd());
}

}  // namespace
}  // namespace trine
