#include "runtime/quantize/plan.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/test_bytes.h"
#include "runtime/quantize/test_model.h"

namespace trine::quantize {
namespace {

using quant::Type;

PlanOptions Options(const char* mix) {
  PlanOptions options;
  const auto found = FindMix(mix);
  EXPECT_TRUE(found.ok()) << found.status();
  if (found.ok()) options.mix = *found;
  return options;
}

TestModel SmallModel(Type type = Type::kF32) {
  TestModel model;
  model.Add("token_embd.weight", {256, 8}, type)
      .Add("blk.0.attn_norm.weight", {256})
      .Add("blk.0.attn_q.weight", {256, 4}, type)
      .Add("blk.0.ffn_gate_inp.weight", {256, 2})
      .Add("blk.0.ffn_down.weight", {96, 4}, type == Type::kF32 ? type : Type::kQ8_0)
      .Add("output.weight", {256, 8}, type);
  return model;
}

std::map<std::string, Type> TypesOf(const Plan& plan) {
  std::map<std::string, Type> types;
  for (const PlannedTensor& tensor : plan.tensors) {
    types[std::string(tensor.source->name)] = tensor.type;
  }
  return types;
}

void ExpectError(const absl::Status& status, const std::string& part) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
}

TEST(PlanTest, TypesAndSizes) {
  const auto file = SmallModel().Open();
  const auto plan = MakePlan(*file, Options("Q4_K_S"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(TypesOf(*plan), (std::map<std::string, Type>{
                                {"token_embd.weight", Type::kQ4_K},
                                {"blk.0.attn_norm.weight", Type::kF32},
                                {"blk.0.attn_q.weight", Type::kQ4_K},
                                {"blk.0.ffn_gate_inp.weight", Type::kF32},
                                {"blk.0.ffn_down.weight", Type::kQ5_0},
                                {"output.weight", Type::kQ6_K},
                            }));
  EXPECT_EQ(plan->tensors[4].wanted, Type::kQ4_K);
  ASSERT_EQ(plan->warnings.size(), 1u);
  EXPECT_TRUE(absl::StartsWith(plan->warnings[0], "1 of 6 tensors")) << plan->warnings[0];
  EXPECT_EQ(plan->bytes, 8u * 144 + 256 * 4 + 4 * 144 + 512 * 4 + 4 * 3 * 22 + 8 * 210);
  EXPECT_EQ(plan->source_bytes, file->tensor_bytes());
  EXPECT_EQ(plan->parameters, 8u * 256 + 256 + 4 * 256 + 512 + 4 * 96 + 8 * 256);
}

// Returns the file that a plan describes, with tensors of zeros.
std::shared_ptr<const gguf::File> FileOf(const Plan& plan) {
  std::vector<std::vector<std::byte>> zeros;
  for (const auto& tensor : plan.builder.tensors()) zeros.emplace_back(tensor.bytes);
  const std::vector<absl::Span<const std::byte>> data(zeros.begin(), zeros.end());
  const auto bytes = gguf::ToBytes(plan.builder, data);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  auto file = gguf::File::FromMemory(*bytes);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

TEST(PlanTest, MetadataIsCopiedAndNamesTheType) {
  TestModel model = SmallModel();
  model.builder().SetUint32("general.file_type", 1);
  model.builder().SetUint32("split.no", 0);
  const auto plan = MakePlan(*model.Open(), Options("Q6_K"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto file = FileOf(*plan);
  const gguf::Metadata& metadata = file->metadata();
  EXPECT_EQ(*metadata.String("general.name"), "made up");
  EXPECT_EQ(*metadata.Integer("general.file_type", 0, 99), 18);
  EXPECT_EQ(*metadata.Integer("general.quantization_version", 0, 99), 2);
  EXPECT_EQ(gguf::FileTypeOf(metadata), "Q6_K");
  EXPECT_FALSE(metadata.Has("split.no"));
}

TEST(PlanTest, ACopyChangesNothing) {
  TestModel model = SmallModel(Type::kQ4_K);
  model.builder().SetUint32("general.file_type", 7);
  const auto file = model.Open();
  const auto plan = MakePlan(*file, Options("COPY"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const PlannedTensor& tensor : plan->tensors) EXPECT_TRUE(tensor.copied());
  EXPECT_EQ(plan->bytes, plan->source_bytes);
  EXPECT_EQ(plan->builder.pairs().size(), 3u);
}

// The tensors are encoded again, without the importance that the source had.
TEST(PlanTest, TheImportanceOfTheSourceIsNotThatOfTheResult) {
  TestModel model = SmallModel(Type::kQ8_0);
  model.builder().SetString("quantize.imatrix.file", "old.gguf");
  model.builder().SetString("quantize.imatrix.dataset", "old.txt");
  model.builder().SetUint32("quantize.imatrix.entries_count", 7);
  model.builder().SetUint32("quantize.imatrix.chunks_count", 9);
  PlanOptions options = Options("Q4_0");
  options.allow_requantize = true;
  const auto source = model.Open();
  const auto plan = MakePlan(*source, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const gguf::Builder::Pair& pair : plan->builder.pairs()) {
    EXPECT_FALSE(absl::StrContains(pair.key, "imatrix")) << pair.key;
  }
  const auto copy = MakePlan(*source, Options("COPY"));
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(*FileOf(*copy)->metadata().String("quantize.imatrix.file"), "old.gguf");
}

TEST(PlanTest, QuantisingTwiceMustBeAllowed) {
  const auto file = SmallModel(Type::kQ8_0).Open();
  PlanOptions options = Options("Q4_0");
  ExpectError(MakePlan(*file, options).status(), "--allow-requantize");
  ExpectError(MakePlan(*file, options).status(), "'token_embd.weight' is Q8_0");
  options.allow_requantize = true;
  EXPECT_TRUE(MakePlan(*file, options).ok());
  // A tensor that keeps its type is copied, and decoding to floats loses nothing more.
  EXPECT_TRUE(MakePlan(*file, Options("Q8_0")).ok());
  const auto floats = MakePlan(*file, Options("F16"));
  ASSERT_TRUE(floats.ok()) << floats.status();
  EXPECT_EQ(TypesOf(*floats)["output.weight"], Type::kF16);
  EXPECT_EQ(TypesOf(*floats)["blk.0.attn_norm.weight"], Type::kF32);
}

TEST(PlanTest, OptionsChangeTheMix) {
  const auto file = SmallModel().Open();
  PlanOptions options = Options("Q4_0");
  options.pure = true;
  EXPECT_EQ(TypesOf(*MakePlan(*file, options))["output.weight"], Type::kQ4_0);
  options.output_type = Type::kQ8_0;
  options.embedding_type = Type::kQ5_1;
  EXPECT_EQ(TypesOf(*MakePlan(*file, options))["output.weight"], Type::kQ8_0);
  EXPECT_EQ(TypesOf(*MakePlan(*file, options))["token_embd.weight"], Type::kQ5_1);
  options.leave_output = true;
  EXPECT_EQ(TypesOf(*MakePlan(*file, options))["output.weight"], Type::kF32);
  options.overrides = {{"attn_[qk]", Type::kBF16}, {"attn", Type::kQ2_K}, {"^out", Type::kQ3_K}};
  options.overrides.erase(options.overrides.begin() + 1);  // it would never match first
  EXPECT_EQ(TypesOf(*MakePlan(*file, options))["blk.0.attn_q.weight"], Type::kBF16);
  EXPECT_EQ(TypesOf(*MakePlan(*file, options))["output.weight"], Type::kQ3_K);
}

TEST(PlanTest, AnEmbeddingThatMakesTheLogitsIsAnOutput) {
  TestModel model;
  model.Add("token_embd.weight", {256, 8});
  const auto file = model.Open();
  PlanOptions options = Options("Q4_0");
  EXPECT_EQ(TypesOf(*MakePlan(*file, options))["token_embd.weight"], Type::kQ6_K);
  options.output_type = Type::kQ8_0;
  EXPECT_EQ(TypesOf(*MakePlan(*file, options))["token_embd.weight"], Type::kQ8_0);
  options.embedding_type = Type::kQ5_0;
  EXPECT_EQ(TypesOf(*MakePlan(*file, options))["token_embd.weight"], Type::kQ5_0);
}

TEST(PlanTest, WithoutATypeThereIsNoPlan) {
  ExpectError(MakePlan(*SmallModel().Open(), PlanOptions()).status(), "no type");
}

TEST(PlanTest, ExpressionsThatAreNoGood) {
  const auto file = SmallModel().Open();
  PlanOptions options = Options("Q4_0");
  options.overrides = {{"attn_(q", Type::kQ8_0}};
  ExpectError(MakePlan(*file, options).status(), "'attn_(q' is wrong at offset 7");
  options.overrides = {{"attn_norm", Type::kQ8_0}};
  ExpectError(MakePlan(*file, options).status(), "matches no tensor");
  options.overrides = {{"(a|b|.)*?x{9}", Type::kQ8_0}, {"((.+)+)+Z", Type::kQ8_0}};
  const auto plan = MakePlan(*file, options);
  EXPECT_FALSE(plan.ok());
}

// A tensor of 256 columns in two matrices, with importances of different lengths.
class PlanImportanceTest : public testing::Test {
 protected:
  absl::StatusOr<Plan> PlanWith(const std::string& tensor, size_t values) {
    TestModel matrix;
    matrix.Add(tensor + ".in_sum2", {static_cast<int64_t>(values), 1}, Type::kF32,
               std::vector<float>(values, 2.0f));
    matrix.Add(tensor + ".counts", {1, 1}, Type::kF32, {1.0f});
    gguf::WriteWhole(folder_.File("imatrix"), matrix.ToBytes());
    auto read = ImportanceMatrix::Read(folder_.File("imatrix"));
    EXPECT_TRUE(read.ok()) << read.status();
    importance_ = *std::move(read);
    PlanOptions options = Options("Q4_0");
    options.importance = &importance_;
    options.importance_path = folder_.File("imatrix");
    return MakePlan(*file_, options);
  }

  gguf::TempFolder folder_;
  ImportanceMatrix importance_;
  const std::shared_ptr<const gguf::File> file_ =
      TestModel().Add("blk.0.ffn_up_exps.weight", {256, 4, 2}).Open();
};

TEST_F(PlanImportanceTest, GoesToItsTensor) {
  for (const size_t values : {256u, 512u}) {
    const auto plan = PlanWith("blk.0.ffn_up_exps.weight", values);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->tensors[0].importance.size(), values);
    EXPECT_TRUE(plan->warnings.empty());
    // The folder, which differs from machine to machine, is not written.
    EXPECT_EQ(*FileOf(*plan)->metadata().String("quantize.imatrix.file"), "imatrix");
  }
}

TEST_F(PlanImportanceTest, OfAnotherShapeIsAnError) {
  ExpectError(PlanWith("blk.0.ffn_up_exps.weight", 128).status(),
              "has 128 values, for 256 columns");
}

TEST_F(PlanImportanceTest, ThatIsMissingIsAWarning) {
  const auto plan = PlanWith("blk.7.ffn_up_exps.weight", 256);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(plan->warnings[0], "does not know 1")) << plan->warnings[0];
}

}  // namespace
}  // namespace trine::quantize
