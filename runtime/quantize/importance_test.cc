#include "runtime/quantize/importance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "runtime/gguf/builder.h"
#include "runtime/gguf/test_file.h"
#include "runtime/quantize/test_model.h"

namespace trine::quantize {
namespace {

using gguf::AppendNumber;

std::string Headless(const std::vector<std::pair<std::string, std::vector<float>>>& entries,
                     bool with_tail = true) {
  std::string bytes;
  AppendNumber(static_cast<int32_t>(entries.size()), &bytes);
  for (const auto& [name, values] : entries) {
    AppendNumber(static_cast<int32_t>(name.size()), &bytes);
    bytes += name;
    AppendNumber(int32_t{7}, &bytes);
    AppendNumber(static_cast<int32_t>(values.size()), &bytes);
    for (const float value : values) AppendNumber(value, &bytes);
  }
  if (!with_tail) return bytes;
  AppendNumber(int32_t{7}, &bytes);
  AppendNumber(int32_t{4}, &bytes);
  return bytes + "book";
}

class ImportanceTest : public testing::Test {
 protected:
  absl::StatusOr<ImportanceMatrix> Read(const std::string& bytes) {
    const auto* start = reinterpret_cast<const std::byte*>(bytes.data());
    gguf::WriteWhole(path_, {start, start + bytes.size()});
    return ImportanceMatrix::Read(path_);
  }
  absl::StatusOr<ImportanceMatrix> Read(const TestModel& model) {
    gguf::WriteWhole(path_, model.ToBytes());
    return ImportanceMatrix::Read(path_);
  }

  gguf::TempFolder folder_;
  const std::string path_ = folder_.File("imatrix");
};

TEST_F(ImportanceTest, ReadsTheOlderFormat) {
  const std::string bytes = Headless({{"a.weight", {1, 2, 3}}, {"b.weight", {4}}});
  const auto matrix = Read(bytes);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->tensors(), 2u);
  EXPECT_EQ(matrix->Find("a.weight"), absl::MakeConstSpan({1.0f, 2.0f, 3.0f}));
  EXPECT_TRUE(matrix->Find("c.weight").empty());
  EXPECT_EQ(matrix->chunks(), 7);
  EXPECT_EQ(matrix->dataset(), "book");
  const auto bare = Read(Headless({{"a.weight", {1}}}, false));
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_EQ(bare->chunks(), 0);
}

TEST_F(ImportanceTest, RefusesWhatIsCutOff) {
  const std::string bytes = Headless({{"a.weight", {1, 2, 3}}, {"b.weight", {4}}}, false);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(Read(bytes.substr(0, length)).ok()) << length;
  }
}

TEST_F(ImportanceTest, RefusesCountsThatAreNone) {
  std::string bytes;
  AppendNumber(int32_t{1 << 30}, &bytes);
  AppendNumber(int32_t{-1}, &bytes);
  EXPECT_FALSE(Read(bytes).ok());
  EXPECT_FALSE(Read("a text, not a matrix at all").ok());
  EXPECT_FALSE(ImportanceMatrix::Read(folder_.File("nothing")).ok());
}

TEST_F(ImportanceTest, RefusesWeightsThatAreNone) {
  for (const float bad : {-1.0f, INFINITY, NAN}) {
    const auto matrix = Read(Headless({{"a.weight", {1, bad}}}));
    EXPECT_TRUE(absl::StrContains(matrix.status().message(), "'a.weight'")) << matrix.status();
  }
  EXPECT_FALSE(Read(Headless({{"a.weight", {1}}, {"a.weight", {1}}})).ok());
}

TEST_F(ImportanceTest, ReadsGgufAndDividesByTheCounts) {
  TestModel model;
  model.Add("a.weight.in_sum2", {2, 2}, quant::Type::kF32, {2, 4, 9, 9});
  model.Add("a.weight.counts", {1, 2}, quant::Type::kF32, {2, 0});
  const std::string datasets[] = {"book"};
  model.builder().SetStrings("imatrix.datasets", datasets);
  model.builder().SetUint32("imatrix.chunk_count", 5);
  const auto matrix = Read(model);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  // The second expert was never used.
  EXPECT_EQ(matrix->Find("a.weight"), absl::MakeConstSpan({1.0f, 2.0f, 1.0f, 1.0f}));
  EXPECT_EQ(matrix->chunks(), 5);
  EXPECT_EQ(matrix->dataset(), "book");
}

TEST_F(ImportanceTest, RefusesSumsWithoutTheirCounts) {
  TestModel alone;
  alone.Add("a.weight.in_sum2", {2, 2});
  EXPECT_FALSE(Read(alone).ok());
  TestModel unlike;
  unlike.Add("a.weight.in_sum2", {2, 2}).Add("a.weight.counts", {1, 3});
  EXPECT_FALSE(Read(unlike).ok());
  TestModel halves;
  halves.Add("a.weight.in_sum2", {2, 1}, quant::Type::kF16).Add("a.weight.counts", {1, 1});
  EXPECT_FALSE(Read(halves).ok());
  TestModel empty;
  empty.Add("token_embd.weight", {32, 2});
  EXPECT_FALSE(Read(empty).ok());
}

}  // namespace
}  // namespace trine::quantize
