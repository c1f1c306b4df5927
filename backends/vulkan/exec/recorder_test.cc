#include "backends/vulkan/exec/recorder.h"

#include "backends/vulkan/exec/queue.h"
#include "backends/vulkan/testing/device_fixtures.h"
#include "backends/vulkan/testing/fake_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/vulkan/spirv/shaders.h"

namespace trine::vulkan {
namespace {

using ::testing::ElementsAre;
using testing::FakeDevice;
using ::testing::HasSubstr;
using testing::Message;

class RecorderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    pipelines_ = *Pipelines::Create(*fake_.device, "");
    queue_ = *Queue::Create(*fake_.device);
    tuning_ = ChooseTuning(fake_.device->caps());
  }
  Recorder Make(bool timestamps = false) {
    return Recorder(*fake_.device, *pipelines_, tuning_, {timestamps});
  }
  static BufferRange Range(uint64_t offset) {
    return {reinterpret_cast<VkBuffer>(0x77), offset, 256};
  }
  // Returns a dispatch of y = a + b over ranges of one buffer.
  Dispatch AddOf(uint64_t a, uint64_t b, uint64_t y) const {
    Dispatch dispatch;
    dispatch.shader = &shaders::add_f32;
    dispatch.constants = {64};
    dispatch.push = std::as_bytes(std::span(&n_, 1));
    dispatch.buffers = {Read(Range(a)), Read(Range(b)), Write(Range(y))};
    return dispatch;
  }

  const uint32_t n_ = 64;
  FakeDevice fake_{testing::Lavapipe()};
  std::unique_ptr<Pipelines> pipelines_;
  std::unique_ptr<Queue> queue_;
  Tuning tuning_;
};

TEST_F(RecorderTest, PutsBarriersOnlyWhereTheyAreNeeded) {
  Recorder recorder = Make();
  ASSERT_TRUE(recorder.Add(AddOf(0, 256, 512)).ok());
  ASSERT_TRUE(recorder.Add(AddOf(0, 256, 768)).ok());     // independent of the first
  ASSERT_TRUE(recorder.Add(AddOf(512, 768, 1024)).ok());  // needs both
  ASSERT_TRUE(recorder.Add(AddOf(0, 256, 1280)).ok());    // needs none
  ASSERT_TRUE(recorder.Add(AddOf(0, 1280, 512)).ok());    // needs the one before
  auto recording = recorder.Finish();
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ((*recording)->barriers(), 2u);
  EXPECT_THAT(
      fake_.driver.commands,
      ElementsAre("begin", "barrier", "pipeline", "push 4", "dispatch 1 1 1", "push 4",
                  "dispatch 1 1 1", "barrier", "push 4", "dispatch 1 1 1", "push 4",
                  "dispatch 1 1 1", "barrier", "push 4", "dispatch 1 1 1", "barrier", "end"));
  EXPECT_EQ(fake_.driver.barriers.back().dstAccessMask, VkAccessFlags{VK_ACCESS_HOST_READ_BIT});
  EXPECT_EQ(fake_.driver.barriers[1].srcAccessMask, VkAccessFlags{VK_ACCESS_SHADER_WRITE_BIT});
  EXPECT_EQ(fake_.driver.barriers[1].dstAccessMask,
            VkAccessFlags{VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT})
      << "between shaders no other part of the device is stopped";
  EXPECT_EQ(fake_.driver.descriptors.size(), 15u);
  EXPECT_EQ(fake_.driver.descriptors[2].offset, 512u);
  EXPECT_EQ(fake_.driver.descriptors[2].range, 256u);
}

TEST_F(RecorderTest, CopiesAreStepsToo) {
  Recorder recorder = Make();
  ASSERT_TRUE(recorder.Copy(Range(1536), Range(0)).ok());
  ASSERT_TRUE(recorder.Add(AddOf(0, 256, 512)).ok());
  ASSERT_TRUE(recorder.Copy(Range(512), Range(1024)).ok());
  ASSERT_TRUE(recorder.Copy({}, {}).ok());
  auto recording = recorder.Finish();
  ASSERT_TRUE(recording.ok());
  EXPECT_EQ((*recording)->barriers(), 2u);
  EXPECT_THAT(fake_.driver.commands,
              ElementsAre("begin", "barrier", "copy 256", "barrier", "pipeline", "push 4",
                          "dispatch 1 1 1", "barrier", "copy 256", "barrier", "end"));
}

TEST_F(RecorderTest, ACopyWaitsForWhatOnlyShadersHaveWaitedFor) {
  Recorder recorder = Make();
  ASSERT_TRUE(recorder.Add(AddOf(0, 256, 512)).ok());
  ASSERT_TRUE(recorder.Add(AddOf(0, 512, 768)).ok());        // a barrier between shaders
  ASSERT_TRUE(recorder.Copy(Range(512), Range(1024)).ok());  // written before that barrier
  // a shader after a copy needs another barrier
  ASSERT_TRUE(recorder.Add(AddOf(0, 768, 1280)).ok());
  auto recording = recorder.Finish();
  ASSERT_TRUE(recording.ok());
  EXPECT_EQ((*recording)->barriers(), 3u);
  const VkMemoryBarrier& to_copy = fake_.driver.barriers[2];
  EXPECT_EQ(to_copy.srcAccessMask, VkAccessFlags{VK_ACCESS_SHADER_WRITE_BIT});
  EXPECT_EQ(to_copy.dstAccessMask,
            VkAccessFlags{VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT});
  const VkMemoryBarrier& back = fake_.driver.barriers[3];
  EXPECT_EQ(back.srcAccessMask,
            VkAccessFlags{VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT});
  EXPECT_EQ(back.dstAccessMask,
            VkAccessFlags{VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT});
}

TEST_F(RecorderTest, CutsWorkThatIsTooMuchForOneSubmission) {
  tuning_.submit_operations = 100;
  tuning_.submit_dispatches = 3;
  Recorder recorder = Make();
  for (const uint64_t operations : {60, 60, 10, 10, 10, 500, 1}) {
    Dispatch dispatch = AddOf(0, 256, 512);
    dispatch.operations = operations;
    ASSERT_TRUE(recorder.Add(dispatch).ok());
  }
  auto recording = recorder.Finish();
  ASSERT_TRUE(recording.ok());
  EXPECT_EQ((*recording)->parts(), 5u) << "60 | 60 10 10 | 10 | 500 | 1";
  EXPECT_EQ((*recording)->barriers(), 2u) << "a part begins with a barrier of its own";
  const auto point = queue_->Submit(**recording);
  ASSERT_TRUE(point.ok());
  EXPECT_EQ(fake_.driver.submissions, 5);
  EXPECT_EQ(*point, 5u);
  EXPECT_TRUE(queue_->Wait(*point, 1000).ok());
}

TEST_F(RecorderTest, NothingToDoIsNoWork) {
  Recorder recorder = Make();
  Dispatch dispatch = AddOf(0, 256, 512);
  dispatch.groups = {0, 1, 1};
  ASSERT_TRUE(recorder.Add(dispatch).ok());
  auto recording = recorder.Finish();
  ASSERT_TRUE(recording.ok());
  EXPECT_EQ((*recording)->parts(), 0u);
  EXPECT_EQ(*queue_->Submit(**recording), 0u);
  EXPECT_TRUE(queue_->Wait(0, 0).ok());
}

TEST_F(RecorderTest, RefusesWhatDoesNotFitTheShader) {
  const auto error = [&](auto change) {
    Recorder recorder = Make();
    Dispatch dispatch = AddOf(0, 256, 512);
    change(&dispatch);
    const absl::Status status = recorder.Add(dispatch);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(recorder.Finish().status(), status) << "the first failure stays";
    return Message(status);
  };
  EXPECT_THAT(error([](Dispatch* d) { d->buffers.pop_back(); }), HasSubstr("has 3 buffers, not 2"));
  EXPECT_THAT(error([](Dispatch* d) { d->push = {}; }),
              HasSubstr("4 bytes of push constants, not 0"));
  EXPECT_THAT(error([](Dispatch* d) { d->buffers[2].access = Access::kRead; }),
              HasSubstr("binding 2: the shader writes it, the dispatch reads it"));
  EXPECT_THAT(error([](Dispatch* d) { d->buffers[0].access = Access::kReadWrite; }),
              HasSubstr("binding 0: the shader reads it, the dispatch reads and writes it"));
  EXPECT_THAT(error([](Dispatch* d) { d->buffers[1].range.offset = 4; }),
              HasSubstr("no multiple of 16"));
  EXPECT_THAT(error([](Dispatch* d) { d->buffers[1].range.bytes = (128 << 20) + 4; }),
              HasSubstr("binds at most 134217728"));
  EXPECT_THAT(error([](Dispatch* d) { d->buffers[1].range = {}; }), HasSubstr("no memory"));
  EXPECT_THAT(error([](Dispatch* d) {
                d->groups = {1, 70000, 1};
              }),
              HasSubstr("70000 workgroups along axis 1"));
  EXPECT_THAT(error([](Dispatch* d) { d->constants = {4096}; }), HasSubstr("a workgroup of 4096"));
  EXPECT_THAT(error([](Dispatch* d) { d->shader = nullptr; }), HasSubstr("without a shader"));
  Recorder recorder = Make();
  EXPECT_TRUE(absl::IsInvalidArgument(recorder.Copy(Range(0), Range(512).Part(0, 4))));
}

TEST_F(RecorderTest, ASpentRecorderSaysSo) {
  Recorder recorder = Make();
  ASSERT_TRUE(recorder.Finish().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(recorder.Add(AddOf(0, 256, 512))));
  EXPECT_TRUE(absl::IsFailedPrecondition(recorder.Finish().status()));
}

TEST_F(RecorderTest, TellsHowLongStepsTook) {
  Recorder recorder = Make(true);
  Dispatch dispatch = AddOf(0, 256, 512);
  dispatch.label = "residual";
  ASSERT_TRUE(recorder.Add(AddOf(0, 256, 768)).ok());
  ASSERT_TRUE(recorder.Add(dispatch).ok());
  ASSERT_TRUE(recorder.Copy(Range(0), Range(1024)).ok());
  auto recording = recorder.Finish();
  ASSERT_TRUE(recording.ok());
  auto times = (*recording)->Times();
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->size(), 3u);
  EXPECT_STREQ((*times)[0].label, "add_f32");
  EXPECT_STREQ((*times)[1].label, "residual");
  EXPECT_STREQ((*times)[2].label, "copy");
  EXPECT_EQ((*times)[0].ns, 1);  // ticks 0, 1, 4, 9
  EXPECT_EQ((*times)[1].ns, 3);
  EXPECT_EQ((*times)[2].ns, 5);
  fake_.driver.Fail("vkGetQueryPoolResults", VK_NOT_READY);
  EXPECT_TRUE(absl::IsFailedPrecondition((*recording)->Times().status()));
  Recorder plain = Make();
  ASSERT_TRUE(plain.Add(AddOf(0, 256, 512)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*plain.Finish())->Times().status()));
}

TEST_F(RecorderTest, EveryFailureIsAStatusAndLeavesNothing) {
  ASSERT_TRUE(Make().Add(AddOf(0, 256, 512)).ok());  // compiles the pipeline, which stays
  const int before = fake_.live();
  for (const char* function :
       {"vkCreateCommandPool", "vkAllocateCommandBuffers", "vkBeginCommandBuffer",
        "vkEndCommandBuffer", "vkCreateDescriptorPool", "vkAllocateDescriptorSets",
        "vkCreateQueryPool"}) {
    {
      fake_.driver.Fail(function, VK_ERROR_OUT_OF_DEVICE_MEMORY);
      Recorder recorder = Make(true);
      recorder.Add(AddOf(0, 256, 512)).IgnoreError();
      EXPECT_TRUE(absl::IsResourceExhausted(recorder.Finish().status())) << function;
    }
    EXPECT_EQ(fake_.live(), before) << function;
  }
}

TEST_F(RecorderTest, DeviceLossIsAStatusAtAnyCall) {
  for (const char* function : {"vkQueueSubmit", "vkWaitSemaphores", "vkGetSemaphoreCounterValue"}) {
    FakeDevice fake(testing::Lavapipe());
    auto pipelines = *Pipelines::Create(*fake.device, "");
    auto queue = *Queue::Create(*fake.device);
    Recorder recorder(*fake.device, *pipelines, tuning_);
    ASSERT_TRUE(recorder.Add(AddOf(0, 256, 512)).ok());
    auto recording = recorder.Finish();
    ASSERT_TRUE(recording.ok());
    ASSERT_TRUE(queue->Submit(**recording).ok());
    ASSERT_TRUE(queue->Wait(1, 1000).ok());
    fake.driver.Fail(function, VK_ERROR_DEVICE_LOST);
    const auto point = queue->Submit(**recording);
    const absl::Status waited = point.ok() ? queue->Wait(*point, 1000) : point.status();
    const absl::Status asked = queue->Reached().status();
    EXPECT_TRUE(absl::IsUnavailable(asked)) << function << asked;
    if (point.ok() && waited.ok()) continue;  // only Reached has noticed the loss
    EXPECT_TRUE(absl::IsUnavailable(waited)) << function;
    EXPECT_THAT(Message(waited), HasSubstr("VK_ERROR_DEVICE_LOST"));
    EXPECT_TRUE(absl::IsUnavailable(queue->Submit(**recording).status())) << "for good";
    EXPECT_TRUE(queue->Wait(1, 0).ok()) << "what was reached stays reached";
  }
}

TEST_F(RecorderTest, TimeOutsAreStatuses) {
  Recorder recorder = Make();
  ASSERT_TRUE(recorder.Add(AddOf(0, 256, 512)).ok());
  auto recording = recorder.Finish();
  fake_.driver.hangs = true;
  const auto point = queue_->Submit(**recording);
  ASSERT_TRUE(point.ok());
  const absl::Status status = queue_->Wait(*point, 5'000'000);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(Message(status), HasSubstr("not done after 5 ms"));
  EXPECT_TRUE(fake_.device->Health().ok()) << "nothing has failed yet";
  EXPECT_EQ(*queue_->Reached(), 0u);
  EXPECT_TRUE(absl::IsUnavailable(fake_.device->Abandon("it hangs")));
  EXPECT_TRUE(absl::IsUnavailable(queue_->Wait(*point, 5'000'000)));
}

TEST_F(RecorderTest, AFailedSubmissionHasSubmittedNothing) {
  Recorder recorder = Make();
  ASSERT_TRUE(recorder.Add(AddOf(0, 256, 512)).ok());
  auto recording = recorder.Finish();
  fake_.driver.Fail("vkQueueSubmit", VK_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_TRUE(absl::IsResourceExhausted(queue_->Submit(**recording).status()));
  EXPECT_EQ(*queue_->Submit(**recording), 1u) << "the point that failed is used again";
  fake_.driver.Fail("vkCreateSemaphore", VK_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_FALSE(Queue::Create(*fake_.device).ok());
}

}  // namespace
}  // namespace trine::vulkan
