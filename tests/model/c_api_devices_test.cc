// Tests devices in the C API: their counters, their loss, and their readmission.
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "tests/model/c_api_codes.h"
#include "tests/model/temp_file.h"
#include "tests/model/tiny_model.h"
#include "trine/trine.hpp"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CApiDevicesTest : public testing::Test {
 protected:
  CApiDevicesTest() : file_(MakeTinyModel(*TinyModelByName("qwen2")).ToBytes()) {}

  trine_engine_options Options(const char* faults) const {
    trine_engine_options options{};
    options.struct_size = sizeof(options);
    options.model = file_.path().c_str();
    options.context = 128;
    options.plugins = TRINE_SEVERAL_PLUGIN;
    options.tensor_split = "cpu:2,several1:1";
    options.faults = faults;
    return options;
  }

  static std::string Say(const api::Engine& engine, int64_t n) {
    trine_session_options session_options{};
    session_options.flags = TRINE_SESSION_IGNORE_END | TRINE_SESSION_LOGITS_HASH;
    auto session = engine.OpenSession(session_options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    EXPECT_TRUE(session->AppendText("once").ok());
    api::GenerateOptions options;
    options.max_tokens = n;
    const auto result = session->Generate(options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return session->logits_hash();
  }

  const TempFile file_;
};

// The counts of experts are kept in a file, which an engine that is closed has written.
TEST_F(CApiDevicesTest, CountsOfExpertsAreKept) {
  const TempFile moe(*MakeModelBytes(*FindPreset("tiny-mixtral")));
  const std::string stats = moe.path() + ".stats";
  trine_engine_options options = Options(nullptr);
  options.model = moe.path().c_str();
  options.tensor_split = "several1:100%";
  options.hot_experts = 2;
  options.expert_stats = stats.c_str();
  {
    auto engine = api::Engine::Open(options);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    Say(*engine, 5);
    EXPECT_FALSE(std::filesystem::exists(stats));
  }
  EXPECT_TRUE(std::filesystem::exists(stats));
  options.hot_experts = -1;
  const auto none = api::Engine::Open(options);
  EXPECT_TRUE(none.ok()) << none.status().message() << ": no slots, also with counts";
  options.model = file_.path().c_str();
  options.hot_experts = 0;
  EXPECT_THAT(std::string(api::Engine::Open(options).status().message()),
              HasSubstr("the model has no experts"));
  EXPECT_TRUE(std::filesystem::remove(stats));
}

TEST_F(CApiDevicesTest, SegmentsCount) {
  auto engine = api::Engine::Open(Options(nullptr));
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  Say(*engine, 5);
  const auto segments = engine->segments();
  ASSERT_THAT(segments, SizeIs(2));
  EXPECT_STREQ(segments[0].device, "cpu");
  EXPECT_STREQ(segments[1].device, "several1");
  EXPECT_EQ(segments[0].first_layer, 0);
  EXPECT_EQ(segments[0].end_layer, 2);
  EXPECT_EQ(segments[1].end_layer, 3);
  for (const trine_segment_info& s : segments) {
    EXPECT_EQ(s.struct_size, sizeof(s));
    EXPECT_EQ(s.placement, 1u);
    EXPECT_EQ(s.passes, 5u);
    EXPECT_GT(s.tokens, 4u);
    EXPECT_GT(s.busy_ns, 0u);
    EXPECT_GT(s.waiting_ns, 0u);  // one sequence can't keep both at work
    EXPECT_GT(s.busy_ratio, 0.0);
    EXPECT_LT(s.busy_ratio, 1.0);
    EXPECT_GT(s.bytes_in, 0u);
  }
  EXPECT_EQ(segments[0].bytes_out, 0u);  // the next segment reads it in place
  EXPECT_GT(segments[1].bytes_out, 0u);
  EXPECT_EQ(segments[0].tokens, segments[1].tokens);
  EXPECT_THAT(engine->lost_devices(), IsEmpty());
}

TEST_F(CApiDevicesTest, ALostDeviceIsNamedAndTakenInAgain) {
  auto undisturbed = api::Engine::Open(Options(nullptr));
  ASSERT_TRUE(undisturbed.ok());
  const std::string expected = Say(*undisturbed, 8);
  auto engine = api::Engine::Open(Options("several1:lost@token=2,back@open=2"));
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  EXPECT_EQ(engine->Readmit("several1").code(), kFailedPrecondition);
  EXPECT_EQ(Say(*engine, 8), expected);
  const auto lost = engine->lost_devices();
  ASSERT_THAT(lost, SizeIs(1));
  EXPECT_STREQ(lost[0].device, "several1");
  EXPECT_THAT(lost[0].reason, HasSubstr("the device is lost"));
  EXPECT_LT(lost[0].lost_ms, 60'000u);
  const api::Status refused = engine->Readmit();
  EXPECT_EQ(refused.code(), kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr("several1: "));
  EXPECT_THAT(engine->lost_devices(), SizeIs(1));
  const api::Status taken = engine->Readmit("several1");
  EXPECT_TRUE(taken.ok()) << taken.message();
  EXPECT_THAT(engine->lost_devices(), IsEmpty());
  ASSERT_THAT(engine->segments(), SizeIs(2));
  EXPECT_EQ(engine->segments()[1].placement, 3u);
  EXPECT_EQ(Say(*engine, 8), expected);
  EXPECT_EQ(engine->segments()[1].passes, 8u);
}

TEST_F(CApiDevicesTest, ADeviceThatTakesTooLongIsLost) {
  auto undisturbed = api::Engine::Open(Options(nullptr));
  ASSERT_TRUE(undisturbed.ok()) << undisturbed.status().message();
  trine_engine_options options = Options("several1:hang@token=2");
  options.device_timeout_ms = 200;
  auto engine = api::Engine::Open(options);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  EXPECT_EQ(Say(*engine, 5), Say(*undisturbed, 5));
  EXPECT_THAT(engine->lost_devices(), SizeIs(1));
}

TEST_F(CApiDevicesTest, TheTraceIsWrittenWhenAskedForAndInTheEnd) {
  const std::string path = file_.path() + ".trace";
  trine_engine_options options = Options(nullptr);
  options.trace = path.c_str();
  {
    auto engine = api::Engine::Open(options);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    EXPECT_FALSE(std::filesystem::exists(path));
    Say(*engine, 3);
    EXPECT_TRUE(engine->WriteTrace().ok());
    EXPECT_TRUE(std::filesystem::remove(path));
    Say(*engine, 3);
  }
  EXPECT_TRUE(std::filesystem::remove(path));
  options.trace = "/no/such/folder/t.json";
  EXPECT_EQ(api::Engine::Open(options).status().code(), kUnavailable);
  auto without = api::Engine::Open(Options(nullptr));
  ASSERT_TRUE(without.ok());
  EXPECT_TRUE(without->WriteTrace().ok());
}

TEST_F(CApiDevicesTest, NonsenseIsRefused) {
  EXPECT_EQ(api::Engine::Open(Options("several1:lost@lunch")).status().code(), kInvalidArgument);
  auto engine = api::Engine::Open(Options(nullptr));
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  trine_segment_info segment{};
  EXPECT_EQ(trine_engine_segment(engine->get(), 0, &segment), kInvalidArgument);  // no size
  segment.struct_size = sizeof(segment);
  EXPECT_EQ(trine_engine_segment(nullptr, 0, &segment), kInvalidArgument);
  EXPECT_EQ(trine_engine_segment(engine->get(), 0, nullptr), kInvalidArgument);
  EXPECT_EQ(trine_engine_segment(engine->get(), 2, &segment), kOutOfRange);
  trine_lost_device lost{};
  EXPECT_EQ(trine_engine_lost_device(engine->get(), 0, &lost), kInvalidArgument);
  lost.struct_size = sizeof(lost);
  EXPECT_EQ(trine_engine_lost_device(nullptr, 0, &lost), kInvalidArgument);
  EXPECT_EQ(trine_engine_lost_device(engine->get(), 0, &lost), kOutOfRange);
  EXPECT_EQ(trine_engine_readmit(nullptr, nullptr, nullptr), kInvalidArgument);
  EXPECT_EQ(trine_engine_readmit(engine->get(), nullptr, nullptr), 0);
  EXPECT_NE(trine_engine_readmit(engine->get(), "dgpu9", nullptr), 0);
  EXPECT_EQ(trine_engine_write_trace(nullptr, nullptr), kInvalidArgument);
}

TEST_F(CApiDevicesTest, WhereItGoesCanBeSaidInWords) {
  trine_engine_options options = Options(nullptr);
  options.tensor_split = nullptr;
  options.devices = "several0, several2";
  options.split_strategy = "balanced";
  options.optimize = "throughput";
  auto engine = api::Engine::Open(options);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  for (const trine_segment_info& segment : engine->segments()) {
    EXPECT_THAT(segment.device,
                testing::AnyOf(testing::StrEq("several0"), testing::StrEq("several2")));
  }
  const std::string expected = Say(*engine, 3);
  options.split_strategy = options.optimize = nullptr;
  options.split_mode = "row";
  options.override_tensors = "ffn_down=several1";
  auto rows = api::Engine::Open(options);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ(Say(*rows, 3), expected);
}

TEST_F(CApiDevicesTest, PassesMayLeaveTheirDevice) {
  trine_engine_options options = Options(nullptr);
  options.dispatch = "off";
  auto plain = api::Engine::Open(options);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  const std::string expected = Say(*plain, 3);
  EXPECT_STREQ(plain->segments()[0].helper, "");
  EXPECT_EQ(plain->segments()[0].detours, 0u);
  options.dispatch = "2";
  auto engine = api::Engine::Open(options);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  EXPECT_EQ(Say(*engine, 3), expected);
  EXPECT_STREQ(engine->segments()[0].helper, "several1");
  EXPECT_GT(engine->segments()[0].detours, 0u) << "the prompt";
  EXPECT_LT(engine->segments()[0].detours, engine->segments()[0].passes);
}

TEST_F(CApiDevicesTest, WordsThatMeanNothingAreRefused) {
  const auto refused = [&](const char* trine_engine_options::*member, const char* text) {
    trine_engine_options options = Options(nullptr);
    options.tensor_split = nullptr;
    options.*member = text;
    return !api::Engine::Open(options).ok();
  };
  EXPECT_TRUE(refused(&trine_engine_options::split_strategy, "fast"));
  EXPECT_TRUE(refused(&trine_engine_options::optimize, "memory"));
  EXPECT_TRUE(refused(&trine_engine_options::split_mode, "column"));
  EXPECT_TRUE(refused(&trine_engine_options::devices, "dgpu9"));
  EXPECT_TRUE(refused(&trine_engine_options::device_memory, "cpu:3"));
  EXPECT_TRUE(refused(&trine_engine_options::override_tensors, "ffn_down"));
  EXPECT_TRUE(refused(&trine_engine_options::dispatch, "on"));
  trine_engine_options both = Options(nullptr);
  both.devices = "cpu";
  EXPECT_FALSE(api::Engine::Open(both).ok()) << "with a split";
  trine_engine_options degraded = Options(nullptr);
  degraded.tensor_split = "cpu:2,dgpu9:1";
  EXPECT_FALSE(api::Engine::Open(degraded).ok());
  degraded.flags = TRINE_ENGINE_ALLOW_DEGRADED;
  EXPECT_TRUE(api::Engine::Open(degraded).ok());
}

// A caller with a shorter struct gets only the members it knows, and nothing behind is written.
TEST_F(CApiDevicesTest, OlderStructsStayAsLongAsTheyAre) {
  auto engine = api::Engine::Open(Options(nullptr));
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  trine_segment_info segment;
  std::memset(&segment, 0x5a, sizeof(segment));
  segment.struct_size = offsetof(trine_segment_info, passes);
  ASSERT_EQ(trine_engine_segment(engine->get(), 1, &segment), 0);
  EXPECT_STREQ(segment.device, "several1");
  EXPECT_EQ(segment.end_layer, 3);
  EXPECT_EQ(segment.passes, 0x5a5a5a5a5a5a5a5au);
  trine_engine_options options = Options("several1:lost@lunch");  // not read
  options.struct_size = offsetof(trine_engine_options, faults);
  trine_engine* opened = nullptr;
  EXPECT_EQ(trine_engine_open(&options, &opened, nullptr), 0);
  trine_engine_close(opened);
}

}  // namespace
}  // namespace trine
