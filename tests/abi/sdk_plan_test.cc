#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/abi/graph_builder.h"
#include "trine/sdk/plan.h"

// The handle belongs to the plugin: here it is a piece of memory.
struct trine_buffer {
  std::vector<std::byte> memory;
};

namespace trine::sdk {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::byte* MemoryOf(const trine_span& span) {
  if (span.buffer == nullptr) return nullptr;
  const uint64_t size = span.buffer->memory.size();
  if (span.offset > size || span.bytes > size - span.offset) return nullptr;
  return span.buffer->memory.data() + span.offset;
}

TEST(LayOutScratchTest, PutsTempSlotsOneAfterTheOther) {
  GraphBuilder b;
  b.Slot(TRINE_ROLE_TEMP, 100);
  b.Slot(TRINE_ROLE_IO, 4096);
  b.Slot(TRINE_ROLE_TEMP, 64);
  b.Slot(TRINE_ROLE_TEMP, 0);
  b.Slot(TRINE_ROLE_TEMP, 1);
  Graph graph;
  ASSERT_EQ(b.Refusal(&graph), "");
  std::vector<uint64_t> offsets;
  EXPECT_EQ(LayOutScratch(graph, &offsets), 256u);
  EXPECT_THAT(offsets, ElementsAre(0u, 0u, 128u, 192u, 192u));
  EXPECT_EQ(LayOutScratch(graph, nullptr), 256u);
}

// A constant, an io slot with two alternates and a temp, bound to one buffer.
class PlanStorageTest : public testing::Test {
 protected:
  PlanStorageTest() {
    builder_.Tensor(TRINE_DTYPE_F32, {8, 4}, TRINE_ROLE_CONSTANT, 128);
    builder_.Tensor(TRINE_DTYPE_F32, {8, builder_.Param(1, 4)}, TRINE_ROLE_IO, 128);
    builder_.slots[1].alternates = 2;
    builder_.Tensor(TRINE_DTYPE_F32, {8, 4}, TRINE_ROLE_TEMP, 128);
    builder_.tensors[1].offset = 0;
    EXPECT_EQ(builder_.Refusal(&graph_), "");
    buffer_.memory.resize(1024);
    bindings_ = {
        {0, 0, {&buffer_, 0, 128}}, {1, 0, {&buffer_, 128, 128}}, {1, 1, {&buffer_, 256, 128}}};
    desc_.scratch = {&buffer_, 512, 128};
  }

  std::string Refusal() {
    desc_.n_bindings = static_cast<uint32_t>(bindings_.size());
    desc_.binding_stride = sizeof(trine_binding);
    desc_.bindings = bindings_.data();
    trine_error err{};
    const trine_status status = storage_.Bind(graph_, desc_, MemoryOf, &err);
    if (status == TRINE_OK) return "";
    return status == TRINE_INVALID_ARGUMENT ? err.message : "another status than INVALID_ARGUMENT";
  }

  GraphBuilder builder_;
  Graph graph_;
  trine_buffer buffer_;
  std::vector<trine_binding> bindings_;
  trine_plan_desc desc_{};
  PlanStorage storage_;
};

TEST_F(PlanStorageTest, ExtraScratchLiesBehindTheTemps) {
  desc_.n_bindings = static_cast<uint32_t>(bindings_.size());
  desc_.binding_stride = sizeof(trine_binding);
  desc_.bindings = bindings_.data();
  trine_error err{};
  EXPECT_EQ(storage_.Bind(graph_, desc_, MemoryOf, &err, 1), TRINE_INVALID_ARGUMENT);
  EXPECT_STREQ(err.message, "the scratch is missing or too small");
  desc_.scratch.bytes = 129;
  ASSERT_EQ(storage_.Bind(graph_, desc_, MemoryOf, &err, 1), TRINE_OK);
  EXPECT_EQ(storage_.extra(), buffer_.memory.data() + 512 + 128);
}

TEST_F(PlanStorageTest, ResolvesTensorsToPointers) {
  ASSERT_EQ(Refusal(), "");
  const int64_t params[] = {3};
  const uint32_t alternates[] = {7, 1, 7};  // only those of io slots count
  const std::byte* base = buffer_.memory.data();
  EXPECT_EQ(storage_.ViewOf(graph_, 0, params, alternates).data, base);
  EXPECT_EQ(storage_.ViewOf(graph_, 1, params, nullptr).data, base + 128);
  EXPECT_EQ(storage_.ViewOf(graph_, 1, params, alternates).data, base + 256);
  EXPECT_EQ(storage_.ViewOf(graph_, 2, params, alternates).data, base + 512);
  const View view = storage_.ViewOf(graph_, 1, params, nullptr);
  EXPECT_THAT(view.dims, ElementsAre(8, 3, 1, 1));
  EXPECT_EQ(view.Rows(), 3);
  EXPECT_EQ(view.Row(2), base + 128 + 64);
}

TEST_F(PlanStorageTest, AddsTheTensorsOffset) {
  graph_.tensors[0].offset = 32;
  ASSERT_EQ(Refusal(), "");
  EXPECT_EQ(storage_.ViewOf(graph_, 0, graph_.MaxParams().data(), nullptr).data,
            buffer_.memory.data() + 32);
}

TEST_F(PlanStorageTest, RefusesNullBindings) {
  desc_.n_bindings = 1;
  trine_error err{};
  EXPECT_EQ(storage_.Bind(graph_, desc_, MemoryOf, &err), TRINE_INVALID_ARGUMENT);
}

TEST_F(PlanStorageTest, RefusesAMissingBinding) {
  bindings_.pop_back();
  EXPECT_THAT(Refusal(), HasSubstr("slot 1 is not bound"));
}

TEST_F(PlanStorageTest, RefusesABindingTwice) {
  bindings_.push_back(bindings_[0]);
  EXPECT_THAT(Refusal(), HasSubstr("twice"));
}

TEST_F(PlanStorageTest, RefusesSlotsThatCannotBeBound) {
  bindings_.push_back({2, 0, {&buffer_, 0, 128}});  // temp
  EXPECT_THAT(Refusal(), HasSubstr("no slot"));
  bindings_.back() = {3, 0, {&buffer_, 0, 128}};
  EXPECT_THAT(Refusal(), HasSubstr("no slot"));
  bindings_.back() = {1, 2, {&buffer_, 0, 128}};
  EXPECT_THAT(Refusal(), HasSubstr("no slot"));
}

TEST_F(PlanStorageTest, RefusesSpansTooShort) {
  bindings_[0].span.bytes = 127;
  EXPECT_THAT(Refusal(), HasSubstr("fewer bytes"));
}

TEST_F(PlanStorageTest, RefusesSpansOutOfRange) {
  bindings_[0].span.offset = 1000;
  EXPECT_THAT(Refusal(), HasSubstr("out of range"));
  bindings_[0].span = {&buffer_, ~uint64_t{0}, 128};
  EXPECT_THAT(Refusal(), HasSubstr("out of range"));
  bindings_[0].span = {nullptr, 0, 128};
  EXPECT_THAT(Refusal(), HasSubstr("out of range"));
}

TEST_F(PlanStorageTest, RefusesScratchThatIsMissingOrTooSmall) {
  desc_.scratch = {};
  EXPECT_THAT(Refusal(), HasSubstr("scratch"));
  desc_.scratch = {&buffer_, 512, 127};
  EXPECT_THAT(Refusal(), HasSubstr("scratch"));
  desc_.scratch = {&buffer_, 1000, 128};
  EXPECT_THAT(Refusal(), HasSubstr("scratch"));
}

TEST_F(PlanStorageTest, ChecksRuns) {
  const int64_t params[] = {3};
  const uint32_t alternates[] = {0, 1, 0};
  trine_run_args args{};
  args.n_params = 1;
  args.params = params;
  args.n_alternates = 3;
  args.alternates = alternates;
  trine_error err{};
  EXPECT_EQ(CheckRun(graph_, args, &err), TRINE_OK);

  trine_run_args bad = args;
  bad.n_params = 0;
  EXPECT_EQ(CheckRun(graph_, bad, &err), TRINE_INVALID_ARGUMENT);
  bad = args;
  bad.params = nullptr;
  EXPECT_EQ(CheckRun(graph_, bad, &err), TRINE_INVALID_ARGUMENT);
  for (const int64_t value : {int64_t{0}, int64_t{5}, int64_t{-1}}) {
    bad = args;
    bad.params = &value;
    EXPECT_EQ(CheckRun(graph_, bad, &err), TRINE_INVALID_ARGUMENT);
    EXPECT_THAT(err.message, HasSubstr("outside 1 to 4"));
  }
  bad = args;
  bad.n_alternates = 2;
  EXPECT_EQ(CheckRun(graph_, bad, &err), TRINE_INVALID_ARGUMENT);
  bad = args;
  bad.alternates = nullptr;
  EXPECT_EQ(CheckRun(graph_, bad, &err), TRINE_INVALID_ARGUMENT);
  bad.n_alternates = 0;
  EXPECT_EQ(CheckRun(graph_, bad, &err), TRINE_OK);
  const uint32_t beyond[] = {0, 2, 0};
  bad = args;
  bad.alternates = beyond;
  EXPECT_EQ(CheckRun(graph_, bad, &err), TRINE_INVALID_ARGUMENT);
  EXPECT_THAT(err.message, HasSubstr("slot 1 has no alternate 2"));
}

TEST(ViewTest, CountsRowsOverThreeDimensions) {
  std::vector<std::byte> memory(1024);
  const View view{memory.data(), TRINE_DTYPE_F32, {2, 3, 2, 2}, {4, 8, 32, 128}};
  EXPECT_EQ(view.Rows(), 12);
  EXPECT_EQ(view.Row(0), memory.data());
  EXPECT_EQ(view.Row(2), memory.data() + 16);
  EXPECT_EQ(view.Row(3), memory.data() + 32);
  EXPECT_EQ(view.Row(11), memory.data() + 16 + 32 + 128);
}

}  // namespace
}  // namespace trine::sdk
