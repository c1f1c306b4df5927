#include "runtime/head/head_file.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/head/test_head.h"

namespace trine {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string TestText() { return *FormatHead(TestHead()); }

// Returns the error for a head with another value at the JSON pointer.
std::string Refusal(const std::string& pointer, const ordered_json& value) {
  ordered_json json = ordered_json::parse(TestText());
  json[ordered_json::json_pointer(pointer)] = value;
  const auto head = ParseHead(json.dump());
  EXPECT_TRUE(absl::IsInvalidArgument(head.status())) << pointer << " " << head.status();
  return std::string(head.status().message());
}

TEST(HeadFileTest, ReadsBackWhatWasWritten) {
  const Head head = TestHead();
  const auto back = ParseHead(TestText());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->kind, head.kind);
  EXPECT_EQ(back->form, head.form);
  EXPECT_EQ(back->model, head.model);
  EXPECT_EQ(back->labels, head.labels);
  EXPECT_EQ(back->training.seed, head.training.seed);
  EXPECT_EQ(back->linear.mean, head.linear.mean);
  EXPECT_EQ(back->linear.scale, head.linear.scale);
  EXPECT_EQ(back->linear.weights, head.linear.weights);
  EXPECT_TRUE(std::signbit(back->linear.weights[1]));
  EXPECT_EQ(*FormatHead(*back), TestText());

  Head branch = TestHead();
  branch.kind = HeadKind::kBranch;
  branch.form = PromptForm::kChat;
  branch.labels.clear();
  const auto branch_back = ParseHead(*FormatHead(branch));
  ASSERT_TRUE(branch_back.ok()) << branch_back.status();
  EXPECT_EQ(branch_back->kind, HeadKind::kBranch);
  EXPECT_EQ(branch_back->form, PromptForm::kChat);
}

TEST(HeadFileTest, EveryMemberIsNeeded) {
  const ordered_json json = ordered_json::parse(TestText());
  for (const auto& [name, value] : json.items()) {
    ordered_json without = json;
    without.erase(name);
    EXPECT_FALSE(ParseHead(without.dump()).ok()) << name;
    if (!value.is_object()) continue;
    for (const auto& [inner, ignored] : value.items()) {
      without = json;
      without[name].erase(inner);
      const auto head = ParseHead(without.dump());
      EXPECT_THAT(std::string(head.status().message()), HasSubstr("\"" + inner + "\" is missing"));
    }
  }
}

TEST(HeadFileTest, EveryMemberIsChecked) {
  EXPECT_THAT(Refusal("/trine_head", 1), HasSubstr("version 1"));
  EXPECT_THAT(Refusal("/trine_head", 1), HasSubstr("train it again"));
  EXPECT_THAT(Refusal("/trine_head", 3), HasSubstr("version is not 2"));
  EXPECT_THAT(Refusal("/trine_head", 0), HasSubstr("version is not 2"));
  EXPECT_THAT(Refusal("/trine_head", "2"), HasSubstr("version is not 2"));
  EXPECT_THAT(Refusal("/kind", "other"), HasSubstr("\"kind\""));
  EXPECT_THAT(Refusal("/kind", "branch"), HasSubstr("\"labels\""));
  EXPECT_THAT(Refusal("/form", 3), HasSubstr("\"form\""));
  EXPECT_THAT(Refusal("/numerics", 0), HasSubstr("\"numerics\""));
  EXPECT_THAT(Refusal("/numerics", 1.5), HasSubstr("\"numerics\""));
  EXPECT_THAT(Refusal("/model", 1), HasSubstr("\"model\""));
  EXPECT_THAT(Refusal("/model/architecture", ""), HasSubstr("\"architecture\""));
  EXPECT_THAT(Refusal("/model/n_embd", 4), HasSubstr("n_embd is 4"));
  EXPECT_THAT(Refusal("/model/n_embd", -3), HasSubstr("\"n_embd\""));
  EXPECT_THAT(Refusal("/model/n_embd", ~uint64_t{0}), HasSubstr("\"n_embd\""));
  EXPECT_THAT(Refusal("/model/hash", "12"), HasSubstr("16 hexadecimal"));
  EXPECT_THAT(Refusal("/model/hash", "-x34567890123456"), HasSubstr("16 hexadecimal"));
  EXPECT_THAT(Refusal("/labels", {"A"}), HasSubstr("\"labels\" has 1"));
  EXPECT_THAT(Refusal("/labels/1", "A"), HasSubstr("same twice"));
  EXPECT_THAT(Refusal("/labels/1", 5), HasSubstr("no text"));
  EXPECT_THAT(Refusal("/labels/1", std::string(300, 'x')), HasSubstr("300 bytes"));
  EXPECT_THAT(Refusal("/training/examples", 0), HasSubstr("examples"));
  EXPECT_THAT(Refusal("/training/correct", 11), HasSubstr("examples"));
  EXPECT_THAT(Refusal("/training/held_out_correct", 5), HasSubstr("held-out"));
  EXPECT_THAT(Refusal("/training/seed", -1), HasSubstr("\"seed\""));
  EXPECT_THAT(Refusal("/training/hold_out", 1), HasSubstr("\"hold_out\""));
  EXPECT_THAT(Refusal("/training/l2", 0), HasSubstr("\"l2\""));
  EXPECT_THAT(Refusal("/bias", "0"), HasSubstr("\"bias\""));
  EXPECT_THAT(Refusal("/bias", 1e300), HasSubstr("\"bias\""));
  EXPECT_THAT(Refusal("/mean/1", nullptr), HasSubstr("\"mean\""));
  EXPECT_THAT(Refusal("/mean/1", 1e31), HasSubstr("\"mean\""));
  EXPECT_THAT(Refusal("/scale/2", 0), HasSubstr("\"scale\" has the value 0 at 2"));
  EXPECT_THAT(Refusal("/scale/2", -1), HasSubstr("\"scale\""));
  EXPECT_THAT(Refusal("/weights", {1, 2}), HasSubstr("\"weights\" has 2 values"));
  EXPECT_THAT(Refusal("/weights", "none"), HasSubstr("\"weights\" is no list"));
}

TEST(HeadFileTest, WhatIsNoHeadIsRefused) {
  const auto message = [](const std::string& text) {
    return std::string(ParseHead(text).status().message());
  };
  EXPECT_THAT(message(""), HasSubstr("not JSON"));
  EXPECT_THAT(message("[]"), HasSubstr("no head"));
  EXPECT_THAT(message("{\"weights\": []}"), HasSubstr("no head"));
  EXPECT_THAT(message(std::string(100000, '[')), HasSubstr("not JSON"));
  EXPECT_THAT(message("{\"trine_head\": 1e999}"), HasSubstr("not JSON"));
}

// Truncated anywhere or with any byte changed, a file is refused with a reason or gives a valid
// head.
TEST(HeadFileTest, DamagedFilesAreRefusedOrSound) {
  const std::string text = TestText();
  for (size_t n = 0; n + 2 < text.size(); ++n) {
    EXPECT_FALSE(ParseHead(std::string_view(text).substr(0, n)).ok()) << n;
  }
  Noise noise(5);
  const std::vector<float> row = {3.4e38f, -3.4e38f, 1e-38f};
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = text;
    const int changes = 1 + round % 3;
    for (int k = 0; k < changes; ++k) {
      const auto at =
          static_cast<size_t>((noise.Next() + 1) / 2 * static_cast<double>(text.size() - 1));
      damaged[at] = static_cast<char>(round % 2 == 0 ? "0123456789-.e,[]{}\":"[round / 2 % 20]
                                                     : static_cast<int>(128 * (noise.Next() + 1)));
    }
    const auto head = ParseHead(damaged);
    if (!head.ok()) continue;
    ++read;
    EXPECT_TRUE(CheckHead(*head).ok());
    EXPECT_TRUE(std::isfinite(head->linear.LogOdds(row)));
  }
  EXPECT_GT(read, 100);  // a changed digit is still a number
}

TEST(HeadFileTest, SaysWhichModelItIsFor) {
  const Head head = TestHead();
  EXPECT_TRUE(CheckFits(head, head.model).ok());
  const auto message = [&](auto change) {
    ModelIdentity other = head.model;
    change(&other);
    const absl::Status s = CheckFits(head, other);
    EXPECT_TRUE(absl::IsFailedPrecondition(s));
    return std::string(s.message());
  };
  EXPECT_THAT(message([](ModelIdentity* m) { m->architecture = "qwen2"; }), HasSubstr("qwen2"));
  EXPECT_THAT(message([](ModelIdentity* m) { m->n_embd = 4; }), HasSubstr("n_embd 3"));
  EXPECT_THAT(message([](ModelIdentity* m) { m->n_vocab = 9; }), HasSubstr("vocabulary of 1000"));
  EXPECT_THAT(message([](ModelIdentity* m) { m->hash ^= 1; }), HasSubstr("000000001234abcd"));
  Head older = head;
  older.numerics = TRINE_NUMERICS_VERSION + 1;
  EXPECT_THAT(std::string(CheckFits(older, head.model).message()), HasSubstr("numerics"));
}

TEST(HeadFileTest, FilesAppearWhole) {
  namespace fs = std::filesystem;
  EXPECT_EQ(HeadPathFor("a/tales.gguf"), "a/tales.head.json");
  EXPECT_EQ(HeadPathFor("tales"), "tales.head.json");
  const fs::path folder = fs::path(::testing::TempDir()) / "head_file_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string path = (folder / "a.head.json").string();
  EXPECT_TRUE(absl::IsNotFound(ReadHead(path).status()));
  ASSERT_TRUE(WriteHead(path, TestHead()).ok());
  ASSERT_TRUE(WriteHead(path, TestHead()).ok());  // replaces
  std::stringstream bytes;
  bytes << std::ifstream(path).rdbuf();
  EXPECT_EQ(bytes.str(), TestText());
  EXPECT_TRUE(ReadHead(path).ok());
  Head wrong = TestHead();
  wrong.linear.bias = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(WriteHead(path, wrong).ok());
  EXPECT_TRUE(ReadHead(path).ok());  // unchanged
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
  EXPECT_THAT(std::string(ReadHead(folder.string()).status().message()), HasSubstr("no file"));
  std::ofstream(path) << "{}";
  EXPECT_THAT(std::string(ReadHead(path).status().message()), StartsWith(path + ": "));
  EXPECT_FALSE(WriteHead((folder / "none" / "x").string(), TestHead()).ok());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace trine
