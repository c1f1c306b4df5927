// Public test cases for vocabularies of known models, if the shared folder exists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/gguf/gguf_file.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {
namespace {

std::filesystem::path SharedFolder() {
  const char* shared = std::getenv("TRINE_SHARED_DIR");
  if (shared != nullptr) return shared;
  return std::filesystem::path(TRINE_SOURCE_DIR) / ".." / "shared";
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> ReadTexts(const std::filesystem::path& path) {
  const std::string all = ReadFile(path);
  const std::string mark = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  size_t begin = 0;
  for (size_t end; (end = all.find(mark, begin)) != all.npos; begin = end + mark.size()) {
    texts.push_back(all.substr(begin, end - begin));
  }
  if (begin < all.size()) texts.push_back(all.substr(begin));
  return texts;
}

std::vector<std::vector<int32_t>> ReadIds(const std::filesystem::path& path) {
  std::istringstream lines(ReadFile(path));
  std::vector<std::vector<int32_t>> all;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    all.emplace_back(std::istream_iterator<int32_t>(numbers), std::istream_iterator<int32_t>());
  }
  return all;
}

std::shared_ptr<const Tokenizer> Load(const std::filesystem::path& path) {
  const auto file = gguf::File::Open(path.string());
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return nullptr;
  const auto data = ReadTokenizerData((*file)->metadata());
  EXPECT_TRUE(data.ok()) << data.status();
  if (!data.ok()) return nullptr;
  auto tokenizer = Tokenizer::Create(*data);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

// Checks that a vocabulary of a kind that is not known yet is refused by the name of the kind.
void ExpectRefused(const std::filesystem::path& path, const std::string& kind) {
  const auto file = gguf::File::Open(path.string());
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Status status = ReadTokenizerData((*file)->metadata()).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("'" + kind + "'"));
}

TEST(PublicCasesTest, AllMatch) {
  const std::filesystem::path folder = SharedFolder() / "tokenizers";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no folder " << folder;
  int vocabularies = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    if (name.find("-bert-") != std::string::npos) {
      ExpectRefused(entry.path(), "bert");
      continue;
    }
    const auto tokenizer = Load(entry.path());
    ASSERT_NE(tokenizer, nullptr);
    const auto texts = ReadTexts(entry.path().string() + ".inp");
    const auto expected = ReadIds(entry.path().string() + ".out");
    ASSERT_EQ(texts.size(), expected.size());
    ASSERT_GT(texts.size(), 20u);
    ++vocabularies;
    for (size_t i = 0; i < texts.size(); ++i) {
      SCOPED_TRACE(texts[i]);
      const auto ids = tokenizer->Encode(texts[i], {.add_special = false});
      ASSERT_TRUE(ids.ok()) << ids.status();
      EXPECT_EQ(*ids, expected[i]);
      EXPECT_EQ(tokenizer->Decode(*ids), texts[i]);
    }
  }
  EXPECT_GT(vocabularies, 0);
}

// The prompts of the golden logits, as another engine tokenized them.
TEST(PublicCasesTest, GoldenPromptsMatch) {
  const std::filesystem::path folder = SharedFolder() / "golden";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no folder " << folder;
  const auto tokenizer = Load(TRINE_SHIPPED_MODEL);
  ASSERT_NE(tokenizer, nullptr);
  int prompts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const auto json = nlohmann::json::parse(ReadFile(entry.path()), nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << entry.path();
    if (!json.contains("prompt")) continue;
    SCOPED_TRACE(entry.path().filename().string());
    const auto expected = json["prompt"].get<std::vector<int32_t>>();
    const auto ids = tokenizer->Encode(tokenizer->Decode(expected, SpecialText::kShow),
                                       {.add_special = false, .parse_special = true});
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, expected);
    ++prompts;
  }
  EXPECT_GT(prompts, 0);
}

}  // namespace
}  // namespace trine
