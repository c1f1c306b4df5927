#include "runtime/tokenizer/tokenizer_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/gguf/builder.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/gguf/test_bytes.h"

namespace trine {
namespace {

using testing::HasSubstr;

gguf::Builder Bpe() {
  gguf::Builder builder;
  builder.SetString("general.architecture", "llama");
  builder.SetString("tokenizer.ggml.model", "gpt2");
  builder.SetString("tokenizer.ggml.pre", "llama-bpe");
  builder.SetStrings("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "ab", "<s>"});
  builder.SetInt32s("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1, 1, 3});
  builder.SetStrings("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  builder.SetUint32("tokenizer.ggml.bos_token_id", 3);
  return builder;
}

gguf::Builder Spm() {
  gguf::Builder builder = Bpe();
  builder.SetString("tokenizer.ggml.model", "llama");
  builder.Remove("tokenizer.ggml.pre");
  builder.Remove("tokenizer.ggml.merges");
  builder.Remove("tokenizer.ggml.bos_token_id");
  builder.SetFloat32s("tokenizer.ggml.scores", std::vector<float>{-1, -2, 0.5, 0});
  return builder;
}

// The data with the file, which its views need.
struct Result {
  std::shared_ptr<const gguf::File> file;
  absl::StatusOr<TokenizerData> data;
};

Result Read(const gguf::Builder& builder) {
  const auto bytes = gguf::ToBytes(builder, {});
  if (!bytes.ok()) return {nullptr, bytes.status()};
  auto file = gguf::File::FromMemory(*bytes);
  if (!file.ok()) return {nullptr, file.status()};
  auto data = ReadTokenizerData((*file)->metadata());
  return {*std::move(file), std::move(data)};
}

std::string Refusal(const gguf::Builder& builder) {
  const Result result = Read(builder);
  EXPECT_NE(result.file, nullptr) << result.data.status();
  EXPECT_FALSE(result.data.ok());
  return std::string(result.data.status().message());
}

TEST(TokenizerDataTest, ReadsAByteLevelVocabulary) {
  const auto [file, data] = Read(Bpe());
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->model, TokenizerModel::kByteLevelBpe);
  EXPECT_EQ(data->pre_tokenizer, "llama-bpe");
  EXPECT_THAT(data->tokens, testing::ElementsAre("a", "b", "ab", "<s>"));
  EXPECT_THAT(data->merges, testing::ElementsAre("a b"));
  EXPECT_EQ(data->types[3], TokenType::kControl);
  EXPECT_EQ(data->bos, 3);
  EXPECT_EQ(data->eos, kNoToken);
  EXPECT_TRUE(data->add_bos);  // llama-bpe's default
  EXPECT_FALSE(data->add_eos);
  EXPECT_FALSE(data->add_space_prefix);
  EXPECT_FALSE(data->special_strips_right);
}

TEST(TokenizerDataTest, ReadsASentencePieceVocabulary) {
  const auto [file, data] = Read(Spm());
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->model, TokenizerModel::kSentencePiece);
  EXPECT_THAT(data->scores, testing::ElementsAre(-1, -2, 0.5, 0));
  EXPECT_EQ(data->unk, 0);
  EXPECT_EQ(data->bos, 1);
  EXPECT_EQ(data->eos, 2);
  EXPECT_TRUE(data->add_bos);
  EXPECT_TRUE(data->add_space_prefix);
}

TEST(TokenizerDataTest, WhatTheFileSaysGoesBeforeDefaults) {
  gguf::Builder builder = Spm();
  builder.SetBool("tokenizer.ggml.add_bos_token", false);
  builder.SetBool("tokenizer.ggml.add_eos_token", true);
  builder.SetBool("tokenizer.ggml.add_space_prefix", false);
  builder.SetUint32("tokenizer.ggml.eos_token_id", 3);
  builder.SetUint32("tokenizer.ggml.eot_token_id", 2);
  builder.SetString("general.name", "Phi-3 mini");
  const auto [file, data] = Read(builder);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_FALSE(data->add_bos);
  EXPECT_TRUE(data->add_eos);
  EXPECT_FALSE(data->add_space_prefix);
  EXPECT_EQ(data->eos, 3);
  EXPECT_EQ(data->eot, 2);
  EXPECT_TRUE(data->special_strips_right);
}

TEST(TokenizerDataTest, IdsOutsideTheVocabulary) {
  gguf::Builder builder = Bpe();
  builder.SetUint32("tokenizer.ggml.padding_token_id", 32000);   // in many files
  builder.SetUint32("tokenizer.ggml.eos_token_id", UINT32_MAX);  // none
  const auto [file, data] = Read(builder);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->pad, kNoToken);
  EXPECT_EQ(data->eos, kNoToken);
  builder.SetUint32("tokenizer.ggml.eos_token_id", 4);
  EXPECT_EQ(Refusal(builder),
            "'tokenizer.ggml.eos_token_id' is 4, but the vocabulary has 4 tokens");
}

TEST(TokenizerDataTest, RefusesOtherTokenizersByName) {
  for (const std::string name : {"bert", "t5", "rwkv", "no_vocab", ""}) {
    gguf::Builder builder = Bpe();
    builder.SetString("tokenizer.ggml.model", name);
    EXPECT_EQ(Refusal(builder), "unknown tokenizer '" + name +
                                    "'; the known ones are gpt2 (byte-level BPE) and llama "
                                    "(SentencePiece)");
  }
}

TEST(TokenizerDataTest, RefusesMissingAndMistypedKeysByName) {
  for (const std::string key : {"model", "tokens", "merges"}) {
    gguf::Builder builder = Bpe();
    builder.Remove("tokenizer.ggml." + key);
    EXPECT_THAT(Refusal(builder), HasSubstr("tokenizer.ggml." + key));
  }
  for (const std::string key : {"model", "pre", "tokens", "merges", "token_type", "bos_token_id",
                                "add_bos_token", "padding_token_id"}) {
    gguf::Builder builder = Bpe();
    builder.SetFloat32("tokenizer.ggml." + key, 1.5f);
    EXPECT_THAT(Refusal(builder), HasSubstr("tokenizer.ggml." + key)) << key;
  }
  for (const std::string key : {"tokens", "merges", "token_type"}) {
    gguf::Builder builder = Bpe();
    builder.SetFloat32s("tokenizer.ggml." + key, std::vector<float>{1});
    EXPECT_THAT(Refusal(builder), HasSubstr("'tokenizer.ggml." + key + "' is no array of"));
  }
  gguf::Builder builder = Spm();
  builder.SetStrings("tokenizer.ggml.scores", std::vector<std::string>{"1"});
  EXPECT_EQ(Refusal(builder), "'tokenizer.ggml.scores' is no array of numbers");
}

TEST(TokenizerDataTest, RefusesUnknownTypes) {
  gguf::Builder builder = Bpe();
  builder.SetInt32s("tokenizer.ggml.token_type", std::vector<int32_t>{1, 9, 1, 3});
  EXPECT_EQ(Refusal(builder),
            "'tokenizer.ggml.token_type' holds the type 9 for token 1, expected 0 to 6");
}

}  // namespace
}  // namespace trine
