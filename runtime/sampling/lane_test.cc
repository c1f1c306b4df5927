#include "runtime/sampling/lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/sampling/sampler.h"
#include "runtime/sampling/test_oracle.h"

namespace trine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<Lane> Make(int threads) {
  absl::StatusOr<std::unique_ptr<Lane>> lane = Lane::Create(threads);
  EXPECT_TRUE(lane.ok()) << lane.status();
  return *std::move(lane);
}

TEST(LaneTest, RunsEachTaskOnceAndShowsItsWrites) {
  const std::unique_ptr<Lane> lane = Make(3);
  for (int n = 0; n < 40; ++n) {
    for (int round = 0; round < 50; ++round) {
      std::vector<int> ran(static_cast<size_t>(n), 0);
      lane->Run(n, [&](int i) { ++ran[static_cast<size_t>(i)]; });
      ASSERT_EQ(ran, std::vector<int>(static_cast<size_t>(n), 1));
    }
  }
}

TEST(LaneTest, SeveralThreadsWorkAtOnce) {
  const std::unique_ptr<Lane> lane = Make(3);
  ASSERT_EQ(lane->threads(), 3);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  std::atomic<int> arrived{0};
  // Each task waits for all four. Without three helpers it would give up after ten seconds.
  lane->Run(4, [&](int) {
    arrived.fetch_add(1);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (arrived.load() < 4 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    const std::lock_guard<std::mutex> lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(arrived.load(), 4);
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_TRUE(seen.contains(std::this_thread::get_id()));
}

TEST(LaneTest, WaitsForTheSlowestTask) {
  const std::unique_ptr<Lane> lane = Make(1);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> started{0};
  std::atomic<bool> slow_done{false};
  lane->Run(2, [&](int) {
    ++started;
    while (started.load() < 2) std::this_thread::yield();  // one task each
    if (std::this_thread::get_id() == caller) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    slow_done = true;
  });
  EXPECT_TRUE(slow_done.load());
}

TEST(LaneTest, CallersTakeTurns) {
  const std::unique_ptr<Lane> lane = Make(2);
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(4, 0);
  for (size_t c = 0; c < sums.size(); ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<int64_t> sum{0};
        lane->Run(5, [&](int i) { sum.fetch_add(i + 1); });
        sums[c] += sum.load();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sums, std::vector<int64_t>(4, 200 * 15));
}

TEST(LaneTest, ATaskMayUseTheLane) {
  const std::unique_ptr<Lane> lane = Make(2);
  std::atomic<int> ran{0};
  lane->Run(3, [&](int) { lane->Run(4, [&](int) { ran.fetch_add(1); }); });
  EXPECT_EQ(ran.load(), 12);
}

TEST(LaneTest, SamplesTheSameOnAnyNumberOfThreads) {
  constexpr int kSequences = 6, kTokens = 10;
  constexpr int32_t kVocab = 3000;
  quant::Random random(91);
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < kSequences; ++i) {
    rows.push_back(RandomRow(RowShape::kModel, kVocab, &random));
  }
  const auto generate = [&](Lane* lane) {
    std::vector<Sampler> samplers;
    for (int i = 0; i < kSequences; ++i) {
      SamplerOptions options;
      options.seed = static_cast<uint64_t>(i);
      samplers.push_back(*Sampler::Create(options, kVocab));
    }
    std::vector<std::vector<int32_t>> tokens(kSequences);
    const auto sample = [&](int i) {
      const auto s = static_cast<size_t>(i);
      tokens[s].push_back(samplers[s].Sample(rows[s]));
      samplers[s].Accept(tokens[s].back());
    };
    for (int t = 0; t < kTokens; ++t) {
      if (lane != nullptr) {
        lane->Run(kSequences, sample);
      } else {
        for (int i = 0; i < kSequences; ++i) sample(i);
      }
    }
    return tokens;
  };
  const std::vector<std::vector<int32_t>> want = generate(nullptr);
  for (const int threads : {1, 2, 5}) EXPECT_EQ(generate(Make(threads).get()), want);
}

TEST(LaneTest, RunSamplingUsesThePoolWhereItPays) {
  EXPECT_FALSE(Lane::PoolPays(1, kMaxVocabSize));
  EXPECT_FALSE(Lane::PoolPays(2, 32000));
  EXPECT_TRUE(Lane::PoolPays(4, 32000));
  EXPECT_TRUE(Lane::PoolPays(16, 152064));
  const std::unique_ptr<Lane> lane = Make(2);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> elsewhere{0}, ran{0};
  lane->RunSampling(4, 10, [&](int) {
    elsewhere += std::this_thread::get_id() != caller;
    ++ran;
  });
  EXPECT_EQ(elsewhere.load(), 0);
  EXPECT_EQ(ran.load(), 4);
  lane->RunSampling(16, 152064, [&](int) { ++ran; });
  EXPECT_EQ(ran.load(), 20);
}

#if defined(__linux__)
TEST(LaneTest, ThreadsHaveNames) {
  const std::unique_ptr<Lane> lane = Make(2);
  std::set<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    names.insert(name);
  }
  EXPECT_TRUE(names.contains("trine-lane-0"));
  EXPECT_TRUE(names.contains("trine-lane-1"));
}
#endif

TEST(LaneTest, ThreadCountHasBounds) {
  for (const int threads : {0, -1, kMaxLaneThreads + 1}) {
    EXPECT_EQ(Lane::Create(threads).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(LaneTest, TheEnvironmentIsValidated) {
  ASSERT_EQ(unsetenv("TRINE_CPU_LANE_THREADS"), 0);
  const absl::StatusOr<int> standard = LaneThreadsFromEnvironment();
  ASSERT_TRUE(standard.ok());
  EXPECT_GE(*standard, 1);
  EXPECT_LE(*standard, std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 2));
  for (const char* text : {"0", "-1", "257", "", "two", "3x", "99999999999999"}) {
    ASSERT_EQ(setenv("TRINE_CPU_LANE_THREADS", text, 1), 0);
    const absl::Status status = LaneThreadsFromEnvironment().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("TRINE_CPU_LANE_THREADS"), HasSubstr(text),
                      HasSubstr("expected a whole number from 1 to 256")));
  }
  ASSERT_EQ(setenv("TRINE_CPU_LANE_THREADS", "7", 1), 0);
  EXPECT_EQ(*LaneThreadsFromEnvironment(), 7);
  ASSERT_EQ(unsetenv("TRINE_CPU_LANE_THREADS"), 0);
}

}  // namespace
}  // namespace trine
