#include "runtime/quantize/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "kernels/quant/dequantize.h"
#include "runtime/quantize/test_model.h"

namespace trine::quantize {
namespace {

using quant::Type;

QuantizeOptions Threads(uint32_t threads, bool measure_errors = false) {
  QuantizeOptions options;
  options.threads = threads;
  options.measure_errors = measure_errors;
  return options;
}

class QuantizeTest : public testing::Test {
 protected:
  std::shared_ptr<const gguf::File> Save(const TestModel& model, const char* name = "in.gguf") {
    gguf::WriteWhole(folder_.File(name), model.ToBytes());
    auto file = gguf::File::Open(folder_.File(name));
    EXPECT_TRUE(file.ok()) << file.status();
    return *file;
  }

  absl::StatusOr<QuantizeResult> Run(const gguf::File& file, const char* mix,
                                     const QuantizeOptions& run = {},
                                     const std::string& out = "out.gguf") {
    PlanOptions options;
    options.mix = *FindMix(mix);
    options.importance = importance_;
    options.pure = true;
    const auto plan = MakePlan(file, options);
    if (!plan.ok()) return plan.status();
    return Quantize(file, *plan, folder_.File(out), run);
  }

  gguf::Bytes Output(const std::string& out = "out.gguf") {
    return gguf::ReadWhole(folder_.File(out));
  }

  gguf::TempFolder folder_;
  const ImportanceMatrix* importance_ = nullptr;
};

// Rows of 96 values, over several pieces, none of which ends where a row does.
TestModel LongModel() {
  TestModel model;
  model.Add("blk.0.attn_norm.weight", {96})
      .Add("blk.0.attn_q.weight", {96, 3001})
      .Add("blk.0.ffn_up.weight", {256, 700}, Type::kF16)
      .Add("blk.0.ffn_up.bias", {7});
  return model;
}

TEST_F(QuantizeTest, TheSameBytesForAnyNumberOfThreads) {
  const auto file = Save(LongModel());
  PlannedTensor long_one;
  long_one.source = &file->tensors()[1];
  ASSERT_GT(PiecesOf(long_one), 2);
  gguf::Bytes expected;
  for (const uint32_t threads : {0u, 1u, 2u, 5u}) {
    const auto result = Run(*file, "Q4_0", Threads(threads));
    ASSERT_TRUE(result.ok()) << result.status();
    if (expected.empty()) expected = Output();
    EXPECT_EQ(Output(), expected) << threads;
  }
  EXPECT_EQ(folder_.Names().size(), 2u);
}

TEST_F(QuantizeTest, EveryRowIsEncodedByItself) {
  const auto file = Save(LongModel());
  ASSERT_TRUE(Run(*file, "Q5_1", Threads(2)).ok());
  const auto out = gguf::File::Open(folder_.File("out.gguf"));
  ASSERT_TRUE(out.ok()) << out.status();
  for (const gguf::TensorInfo& source : file->tensors()) {
    const gguf::TensorInfo* tensor = (*out)->FindTensor(source.name);
    ASSERT_NE(tensor, nullptr);
    if (source.rank == 1) {
      EXPECT_EQ(tensor->type, source.type);
      EXPECT_EQ(std::memcmp(tensor->data, source.data, source.bytes), 0);
      continue;
    }
    ASSERT_EQ(tensor->type, Type::kQ5_1);
    const int64_t columns = source.dims[0];
    uint64_t from = 0, to = 0;
    ASSERT_TRUE(quant::RowBytes(source.type, columns, &from));
    ASSERT_TRUE(quant::RowBytes(Type::kQ5_1, columns, &to));
    std::vector<float> row(static_cast<size_t>(columns));
    std::vector<std::byte> expected(to);
    for (int64_t i = 0; i < source.Rows(); ++i) {
      const auto at = static_cast<uint64_t>(i);
      quant::DequantizeRow(source.type, source.data + at * from, columns, row.data());
      ASSERT_TRUE(quant::EncodeRow(Type::kQ5_1, row.data(), columns, nullptr, expected.data()));
      ASSERT_EQ(std::memcmp(tensor->data + at * to, expected.data(), to), 0) << source.name << i;
    }
  }
}

TEST_F(QuantizeTest, ImportanceIsThatOfTheColumnAndTheExpert) {
  const auto file = Save(TestModel().Add("blk.0.ffn_up_exps.weight", {96, 3000, 2}));
  quant::Random random(5);
  std::vector<float> sums(192);
  for (float& sum : sums) sum = quant::Abs(random.Wide(-4, 4));
  TestModel matrix;
  matrix.Add("blk.0.ffn_up_exps.weight.in_sum2", {96, 2}, Type::kF32, sums);
  matrix.Add("blk.0.ffn_up_exps.weight.counts", {1, 2}, Type::kF32, {1.0f, 1.0f});
  gguf::WriteWhole(folder_.File("imatrix"), matrix.ToBytes());
  const auto importance = ImportanceMatrix::Read(folder_.File("imatrix"));
  ASSERT_TRUE(importance.ok()) << importance.status();
  importance_ = &*importance;
  ASSERT_TRUE(Run(*file, "Q4_0", Threads(2)).ok());
  const auto out = gguf::File::Open(folder_.File("out.gguf"));
  ASSERT_TRUE(out.ok()) << out.status();

  const gguf::TensorInfo& source = file->tensors()[0];
  const gguf::TensorInfo& tensor = (*out)->tensors()[0];
  std::vector<std::byte> expected(3 * 18);
  for (size_t row = 0; row < 6000; ++row) {
    const auto* x = reinterpret_cast<const float*>(source.data) + row * 96;
    const float* weights = sums.data() + 96 * (row / 3000);
    ASSERT_TRUE(quant::EncodeRow(Type::kQ4_0, x, 96, weights, expected.data()));
    ASSERT_EQ(std::memcmp(tensor.data + row * 54, expected.data(), 54), 0) << row;
  }
}

TEST_F(QuantizeTest, AValueThatIsNoNumberIsNamedAndNothingIsLeft) {
  std::vector<float> values(32 * 5000, 0.5f);
  values[32 * 4500 + 3] = NAN;
  const auto file = Save(TestModel().Add("blk.0.attn_q.weight", {32, 5000}, Type::kF32, values));
  const auto result = Run(*file, "Q8_0", Threads(2));
  EXPECT_TRUE(
      absl::StrContains(result.status().message(),
                        "'blk.0.attn_q.weight' holds an infinity or NaN in row 4500, column 3"))
      << result.status();
  EXPECT_EQ(folder_.Names(), std::vector<std::string>{"in.gguf"});
}

TEST_F(QuantizeTest, WhatIsCancelledLeavesNothing) {
  const auto file = Save(LongModel());
  QuantizeOptions run;
  run.threads = 2;
  int calls = 0;
  run.progress = [&](double fraction) {
    EXPECT_GE(fraction, 0);
    EXPECT_LE(fraction, 1);
    return ++calls < 3;
  };
  EXPECT_TRUE(absl::IsCancelled(Run(*file, "Q4_0", run).status()));
  EXPECT_EQ(folder_.Names(), std::vector<std::string>{"in.gguf"});
}

TEST_F(QuantizeTest, TheFileThatIsReadIsNotReplaced) {
  const auto file = Save(LongModel());
  const gguf::Bytes before = Output("in.gguf");
  std::filesystem::create_symlink(folder_.File("in.gguf"), folder_.File("link.gguf"));
  for (const char* out : {"in.gguf", "link.gguf"}) {
    const auto result = Run(*file, "Q4_0", {}, out);
    EXPECT_TRUE(absl::StrContains(result.status().message(), "is the file that is read"))
        << result.status();
  }
  EXPECT_EQ(Output("in.gguf"), before);
}

TEST_F(QuantizeTest, AFolderThatIsNotThere) {
  const auto file = Save(LongModel());
  EXPECT_FALSE(Run(*file, "Q4_0", {}, "nowhere/out.gguf").ok());
}

TEST_F(QuantizeTest, ACopyJoinsASplitFile) {
  const TestModel model = LongModel();
  const auto whole = Save(model);
  auto writer = gguf::Writer::Create(folder_.File("split.gguf"), model.builder(),
                                     {.version = 3, .max_part_bytes = 500'000});
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (const gguf::TensorInfo& tensor : whole->tensors()) {
    ASSERT_TRUE((*writer)->Write(absl::MakeConstSpan(tensor.data, tensor.bytes)).ok());
  }
  ASSERT_TRUE((*writer)->Finish().ok());
  ASSERT_GT((*writer)->paths().size(), 1u);
  const auto split = gguf::File::Open((*writer)->paths()[1]);
  ASSERT_TRUE(split.ok()) << split.status();
  ASSERT_TRUE(Run(**split, "COPY").ok());
  EXPECT_EQ(Output(), Output("in.gguf"));
  const auto over_a_part =
      Run(**split, "Q4_0", {}, std::filesystem::path((*writer)->paths()[0]).filename());
  EXPECT_FALSE(over_a_part.ok());
}

TEST_F(QuantizeTest, ErrorsAreMeasured) {
  const auto file = Save(LongModel());
  const auto result = Run(*file, "Q8_0", Threads(2, true));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->errors.size(), 4u);
  EXPECT_EQ(result->errors[0], 0);
  EXPECT_NEAR(result->errors[1], 0.0038, 0.0005);
  EXPECT_NEAR(result->errors[2], 0.0038, 0.0005);
}

TEST_F(QuantizeTest, OnlyTernaryTensorsAreKeptByTernaryTypes) {
  std::vector<float> ternary(512);
  for (size_t i = 0; i < ternary.size(); ++i)
    ternary[i] = 0.25f * static_cast<float>(i % 3) - 0.25f;
  TestModel model;
  model.Add("blk.0.attn_q.weight", {256, 2}, Type::kF32, ternary);
  const auto exact = Run(*Save(model), "TQ1_0", Threads(1, true));
  ASSERT_TRUE(exact.ok()) << exact.status();
  EXPECT_TRUE(exact->warnings.empty());
  EXPECT_EQ(exact->errors[0], 0);
  model.Add("blk.0.attn_k.weight", {256, 2000});
  const auto rounded = Run(*Save(model, "other.gguf"), "TQ1_0");
  ASSERT_TRUE(rounded.ok()) << rounded.status();
  ASSERT_EQ(rounded->warnings.size(), 1u);
  EXPECT_TRUE(absl::StartsWith(rounded->warnings[0], "1 of the tensors")) << rounded->warnings[0];
}

}  // namespace
}  // namespace trine::quantize
