#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "trine/sdk/status.h"

namespace trine::sdk {
namespace {

TEST(FailTest, CutsTheSentenceToFit) {
  trine_error err;
  EXPECT_EQ(Fail(&err, TRINE_INTERNAL, std::string(1000, 'x')), TRINE_INTERNAL);
  EXPECT_EQ(std::strlen(err.message), sizeof(err.message) - 1);
  EXPECT_EQ(Fail(nullptr, TRINE_ABORTED, "nobody listens"), TRINE_ABORTED);
}

TEST(GuardTest, TurnsExceptionsIntoStatuses) {
  trine_error err{};
  EXPECT_EQ(Guard(&err, []() -> trine_status { return TRINE_NOT_FOUND; }), TRINE_NOT_FOUND);
  EXPECT_EQ(Guard(&err, []() -> trine_status { throw std::bad_alloc(); }),
            TRINE_RESOURCE_EXHAUSTED);
  EXPECT_EQ(Guard(&err, []() -> trine_status { throw std::runtime_error("why"); }), TRINE_INTERNAL);
  EXPECT_STREQ(err.message, "why");
  EXPECT_EQ(Guard(nullptr, []() -> trine_status { throw 7; }), TRINE_INTERNAL);
}

// A struct in memory whose bytes behind `size` must stay as they are.
struct Frame {
  alignas(trine_op_support) unsigned char bytes[sizeof(trine_op_support) + 64];
  explicit Frame(uint32_t size) {
    std::memset(bytes, 0xee, sizeof(bytes));
    std::memcpy(bytes, &size, sizeof(size));
  }
  trine_op_support* get() { return reinterpret_cast<trine_op_support*>(bytes); }
  bool UntouchedFrom(size_t size) const {
    for (size_t i = size; i < sizeof(bytes); ++i) {
      if (bytes[i] != 0xee) return false;
    }
    return true;
  }
};

trine_op_support Answer() {
  trine_op_support answer{};
  answer.struct_size = 12345;  // must not reach the caller
  answer.support = TRINE_SUPPORT_NO;
  std::memset(answer.reason, 'r', sizeof(answer.reason) - 1);
  return answer;
}

TEST(WriteOutTest, KeepsToTheCallersSize) {
  for (const uint32_t size : {4u, 8u, 16u, 100u, uint32_t{sizeof(trine_op_support)}}) {
    Frame frame(size);
    WriteOut(frame.get(), Answer());
    EXPECT_EQ(frame.get()->struct_size, size);
    EXPECT_TRUE(frame.UntouchedFrom(size)) << size;
    if (size >= 8) {
      EXPECT_EQ(frame.get()->support, uint32_t{TRINE_SUPPORT_NO});
    }
  }
}

TEST(WriteOutTest, FillsWhatItKnowsOfALongerStruct) {
  const uint32_t size = sizeof(trine_op_support) + 32;
  Frame frame(size);
  WriteOut(frame.get(), Answer());
  EXPECT_EQ(frame.get()->struct_size, size);
  EXPECT_TRUE(frame.UntouchedFrom(sizeof(trine_op_support)));
}

TEST(WriteOutTest, WritesNothingWithoutASize) {
  Frame frame(0);
  WriteOut(frame.get(), Answer());
  EXPECT_TRUE(frame.UntouchedFrom(4));
}

TEST(ReadInTest, MissingMembersAreZero) {
  Frame frame(8);
  const trine_op_support read = ReadIn(frame.get());
  EXPECT_EQ(read.struct_size, 8u);
  EXPECT_EQ(read.support, 0xeeeeeeeeu);
  EXPECT_EQ(read.estimated_ns, 0.0);
  EXPECT_EQ(read.reason[0], '\0');
}

TEST(ReadInTest, IgnoresWhatANewerWriterAppended) {
  Frame frame(sizeof(trine_op_support) + 32);
  EXPECT_EQ(ReadIn(frame.get()).support, 0xeeeeeeeeu);
}

TEST(AtTest, FollowsTheStrideNotTheSize) {
  std::vector<unsigned char> bytes(3 * (sizeof(trine_point) + 8), 0xee);
  for (size_t i = 0; i < 3; ++i) {
    const trine_point p{nullptr, 10 + i};
    std::memcpy(bytes.data() + i * (sizeof(p) + 8), &p, sizeof(p));
  }
  const auto* array = reinterpret_cast<const trine_point*>(bytes.data());
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(At(array, sizeof(trine_point) + 8, i).value, 10 + i);
}

TEST(AtTest, AShorterElementsTailIsZero) {
  const trine_timeline* const timelines[2] = {nullptr, nullptr};
  const auto* array = reinterpret_cast<const trine_point*>(timelines);
  EXPECT_EQ(At(array, sizeof(void*), 1).value, 0u);
}

}  // namespace
}  // namespace trine::sdk
