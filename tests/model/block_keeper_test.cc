// Tests kept KV blocks: a sequence that finds them goes on as if it had evaluated their tokens.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/engine/generate.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<int32_t>;
using ::testing::HasSubstr;

class BlockKeeperTest : public testing::Test {
 protected:
  BlockKeeperTest() : file_(Model(1)) {
    std::string pattern = fs::temp_directory_path() / "trine-kv-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~BlockKeeperTest() override {
    engine_.reset();
    fs::remove_all(folder_);
  }

  static std::vector<std::byte> Model(uint32_t seed) {
    TinyModelSpec spec;
    spec.n_layers = 4;
    spec.type = quant::Type::kQ8_0;
    spec.n_embd = 128;
    spec.n_ff = 256;
    spec.seed = seed;
    spec.head_dim = 32;  // which all forms can hold
    return MakeTinyModel(spec).ToBytes();
  }
  EngineOptions Options() {
    EngineOptions options = TestOptions(file_.path());
    options.context = 512;
    options.max_sequences = 2;
    options.threads = 1;
    return options;
  }
  EngineOptions OnDisk() {
    EngineOptions options = Options();
    options.kv_store = folder_ / "store";
    return options;
  }
  void Load(const EngineOptions& options) {
    engine_.reset();
    engine_ = MustLoad(options);
    ASSERT_NE(engine_, nullptr);
  }
  Tokens Some(size_t count, uint32_t seed) const {
    std::mt19937 random(seed);
    Tokens tokens(count);
    for (int32_t& t : tokens) t = static_cast<int32_t>(random() % 200);
    return tokens;
  }
  struct Answer {
    std::vector<float> row;
    Tokens tokens;
    int64_t cached = 0;
    bool operator==(const Answer& other) const {
      return row == other.row && tokens == other.tokens;
    }
  };
  Answer Ask(const Tokens& prompt, std::optional<std::string> space = "", int n = 5) {
    SessionOptions options;
    options.sampler.temp = 0;
    options.ignore_eos = true;
    options.prefix_space = std::move(space);
    auto session = Session::Create(engine_.get(), options);
    EXPECT_TRUE(session.ok());
    EXPECT_TRUE((*session)->Append(prompt).ok());
    const absl::Status read = (*session)->Evaluate();
    EXPECT_TRUE(read.ok()) << read;
    Answer answer{{(*session)->logits().begin(), (*session)->logits().end()}, {}, 0};
    answer.cached = (*session)->sequence().cached_tokens();
    for (int i = 0; i < n; ++i) {
      const auto token = (*session)->Sample();
      EXPECT_TRUE(token.ok());
      answer.tokens.push_back(*token);
      EXPECT_TRUE((*session)->Evaluate().ok());
    }
    return answer;
  }
  Answer AskAlone(const Tokens& prompt, int n = 5) {
    Load(Options());
    return Ask(prompt, std::nullopt, n);
  }

  static bool Becomes(const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < until) {
      if (done()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  TempFile file_;
  fs::path folder_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(BlockKeeperTest, ARestartFindsWhatWasRead) {
  const Tokens prompt = Some(300, 1);
  const Answer alone = AskAlone(prompt, 80);
  Load(OnDisk());
  const Answer first = Ask(prompt, "", 80);
  EXPECT_EQ(first, alone);
  EXPECT_EQ(first.cached, 0);
  Load(OnDisk());  // ends the engine before it
  const Answer second = Ask(prompt, "", 80);
  EXPECT_EQ(second, alone);
  EXPECT_EQ(second.cached, 256);
  // The answer's blocks too.
  Tokens longer = prompt;
  longer.insert(longer.end(), alone.tokens.begin(), alone.tokens.end());
  const Answer third = Ask(longer);
  EXPECT_EQ(third.cached, 320);
  engine_.reset();
  EXPECT_EQ(third, (Load(Options()), Ask(longer, std::nullopt)));
}

TEST_F(BlockKeeperTest, ItsFilesAreForNobodyElse) {
  Load(OnDisk());
  Ask(Some(100, 2));
  engine_.reset();
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "store")) {
    const auto mode = entry.status().permissions() & fs::perms::mask;
    EXPECT_EQ(mode, entry.is_directory() ? fs::perms::owner_all
                                         : fs::perms::owner_read | fs::perms::owner_write)
        << entry.path();
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_GE(files, 1);
}

TEST_F(BlockKeeperTest, AnotherSpaceOrModelOrTypeFindsNothing) {
  const Tokens prompt = Some(200, 3);
  Load(OnDisk());
  Ask(prompt, "alice");
  Load(OnDisk());
  EXPECT_EQ(Ask(prompt, "bob").cached, 0);
  EXPECT_EQ(Ask(prompt, "alice").cached, 192);
  EngineOptions options = OnDisk();
  options.kv_type_k = "f32";
  Load(options);
  EXPECT_EQ(Ask(prompt, "alice").cached, 0);
  TempFile other(Model(2));
  options = OnDisk();
  options.model_path = other.path();
  Load(options);
  EXPECT_EQ(Ask(prompt, "alice").cached, 0);
}

// A block is the same on any device.
TEST_F(BlockKeeperTest, BlocksDoNotKnowHowTheModelIsSplit) {
  const Tokens prompt = Some(260, 4);
  const Answer alone = AskAlone(prompt);
  std::vector<std::string> splits = {"", "several0:1,cpu:2,several1:1", "cpu:3,several1:1"};
  for (const std::string& split : splits) {
    EngineOptions options = OnDisk();
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
    options.placement.split = SplitOf(split);
    if (split.empty()) options.placement.devices = {"cpu"};
    Load(options);
    const Answer answer = Ask(prompt);
    EXPECT_EQ(answer, alone) << split;
    EXPECT_EQ(answer.cached, split.empty() ? 0 : 256) << split;
  }
}

TEST_F(BlockKeeperTest, ADamagedFileIsReadAgainFromTheTokens) {
  const Tokens prompt = Some(260, 5);
  const Answer alone = AskAlone(prompt);
  Load(OnDisk());
  Ask(prompt);
  engine_.reset();
  int damaged = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "store")) {
    if (!entry.is_regular_file() || entry.file_size() < 4096) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(entry.file_size() / 2));
    file.put('!');
    file.put('?');
    ++damaged;
  }
  ASSERT_EQ(damaged, 4);
  Load(OnDisk());
  const Answer answer = Ask(prompt);
  EXPECT_EQ(answer, alone);
  EXPECT_EQ(answer.cached, 0);
  EXPECT_GE(engine_->keeper_counters()->disk.damaged, 1u);
}

TEST_F(BlockKeeperTest, WhatLeavesTheCacheComesBackFromMemory) {
  const Tokens first = Some(400, 6);
  const Answer alone = AskAlone(first);
  EngineOptions options = Options();
  options.kv_host_bytes = uint64_t{64} << 20;
  Load(options);
  EXPECT_EQ(Ask(first), alone);
  for (uint32_t i = 0; i < 4; ++i) Ask(Some(500, 50 + i));  // more than the cache holds
  EXPECT_GT(engine_->prefix_counters().evictions, 0u);
  const Answer again = Ask(first);
  EXPECT_EQ(again, alone);
  EXPECT_EQ(again.cached, 384);
  EXPECT_GT(engine_->keeper_counters()->found_blocks, 0u);
}

// A device is lost: blocks that were kept are not computed again.
TEST_F(BlockKeeperTest, AfterALossBlocksAreFetched) {
  const Tokens prompt = Some(400, 7);
  const Answer alone = AskAlone(prompt, 30);
  EngineOptions options = Options();
  options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
  options.placement.split = SplitOf("several0:1,cpu:2,several1:1");
  options.faults = "several1:lost@token=12";
  options.readmission.first = std::chrono::hours(1);
  options.kv_host_bytes = uint64_t{64} << 20;
  Load(options);
  EXPECT_EQ(Ask(prompt, "", 30), alone);
  EXPECT_EQ(engine_->losses(), 1u);
  EXPECT_GE(engine_->keeper_counters()->found_blocks, 6u);
}

TEST_F(BlockKeeperTest, FewerBitsHaveToBeAllowed) {
  const Tokens prompt = Some(300, 8);
  const Answer alone = AskAlone(prompt);
  EngineOptions options = OnDisk();
  options.kv_store_form = "q8_0";
  const auto refused = Engine::Load(options);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("lose bits"));
  options.kv_lossy = true;
  EngineOptions nowhere = options;
  nowhere.kv_store.clear();
  EXPECT_EQ(Engine::Load(nowhere).status().code(), absl::StatusCode::kInvalidArgument);
  Load(options);
  EXPECT_EQ(Ask(prompt), alone) << "what it reads itself is as it is";
  Load(options);
  const Answer near = Ask(prompt);
  EXPECT_EQ(near.cached, 256);
  EXPECT_NE(near.row, alone.row) << "nothing was lost: the test shows nothing";
  double worst = 0;
  for (size_t i = 0; i < near.row.size(); ++i) {
    worst = std::max(worst, std::abs(double{near.row[i]} - double{alone.row[i]}));
  }
  EXPECT_LT(worst, 0.5);
  EXPECT_EQ(Ask(prompt, std::nullopt), alone) << "a session that shares nothing is exact";
  // Another engine that needs the exact bits does not find them either.
  Load(OnDisk());
  const Answer exact = Ask(prompt);
  EXPECT_EQ(exact.cached, 0);
  EXPECT_EQ(exact, alone);
}

TEST_F(BlockKeeperTest, ManyAtOnce) {
  EngineOptions options = OnDisk();
  options.kv_host_bytes = uint64_t{1} << 20;  // so little that blocks come and go
  options.max_sequences = 4;
  std::vector<Answer> expected;
  for (uint32_t i = 0; i < 3; ++i) expected.push_back(AskAlone(Some(200 + 60 * i, 20 + i), 10));
  for (int round = 0; round < 2; ++round) {
    Load(options);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (uint32_t k = 0; k < 6; ++k) {
          const uint32_t i = (k + static_cast<uint32_t>(t)) % 3;
          EXPECT_EQ(Ask(Some(200 + 60 * i, 20 + i), "", 10), expected[i]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

// Later requests find the blocks in memory: the disk is not read again.
TEST_F(BlockKeeperTest, WhatIsPrefetchedNeedsNoDisk) {
  const Tokens prompt = Some(300, 11);
  const Answer alone = AskAlone(prompt);
  EngineOptions options = OnDisk();
  options.kv_prefetch_bytes = uint64_t{64} << 20;
  Load(options);
  Ask(prompt);
  EXPECT_EQ(engine_->Prefetch("", prompt), nullptr) << "the cache has it";
  Load(options);
  const auto count = [&] { return engine_->keeper_counters()->prefetch; };
  auto prefetch = engine_->Prefetch("", prompt);
  ASSERT_NE(prefetch, nullptr);
  EXPECT_TRUE(Becomes([&] { return count().done == 1; }));
  EXPECT_EQ(count().blocks, 4u);
  EXPECT_GT(count().bytes, 0u);
  const uint64_t hits = engine_->keeper_counters()->disk.hits;
  EXPECT_EQ(hits, 4u);
  // A second prefetch of the same tokens takes no more memory.
  auto same = engine_->Prefetch("", prompt);
  const Tokens longer = [&] {
    Tokens tokens = prompt;
    tokens.resize(400, 7);
    return tokens;
  }();
  auto more = engine_->Prefetch("", longer);
  EXPECT_TRUE(Becomes([&] { return count().done == 3; }));
  EXPECT_EQ(count().begun, 3u);
  prefetch->Stop();
  const Answer answer = Ask(prompt);
  EXPECT_EQ(answer, alone);
  EXPECT_EQ(answer.cached, 256);
  EXPECT_EQ(engine_->keeper_counters()->disk.hits, hits);
  EXPECT_EQ(count().used, 4u);
  EXPECT_EQ(count().blocks, 4u);
  const uint64_t bytes = count().bytes;
  prefetch.reset();
  EXPECT_EQ(count().bytes, bytes) << "two others expect it";
  same.reset();
  more.reset();
  EXPECT_TRUE(Becomes([&] { return count().bytes == 0; }));
  // Another space finds nothing, and absent blocks stay absent.
  Load(options);
  auto bobs = engine_->Prefetch("bob", prompt);
  auto others = engine_->Prefetch("", Some(300, 12));
  EXPECT_TRUE(Becomes([&] { return engine_->keeper_counters()->disk.misses >= 2; }));
  EXPECT_EQ(count().blocks, 0u);
  bobs.reset();
  others.reset();
  Load(OnDisk());
  EXPECT_EQ(engine_->Prefetch("", prompt), nullptr) << "nobody asked for it";
}

TEST_F(BlockKeeperTest, WhatIsPrefetchedIsBounded) {
  const Tokens first = Some(300, 13), second = Some(300, 14);
  Load(OnDisk());
  Ask(first);
  Ask(second);
  Load(OnDisk());  // the engine that ends has kept all blocks
  const KvStoreCounters disk = engine_->keeper_counters()->disk;
  EngineOptions options = OnDisk();
  options.kv_prefetch_bytes = disk.bytes / disk.blocks * 3;  // room for two, with their heads
  Load(options);
  const auto count = [&] { return engine_->keeper_counters()->prefetch; };
  auto one = engine_->Prefetch("", first);
  auto two = engine_->Prefetch("", second);
  const auto full = [&] { return count().bytes + count().bytes / 3 > options.kv_prefetch_bytes; };
  EXPECT_TRUE(Becomes(full));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const uint64_t room = count().blocks;
  EXPECT_LT(room, 4u);
  EXPECT_LE(count().bytes, options.kv_prefetch_bytes);
  // A prefetch that is dropped makes room for the next.
  one.reset();
  EXPECT_EQ(count().cut, 1u);
  EXPECT_TRUE(Becomes([&] { return count().blocks == 2 * room; }));
  EXPECT_EQ(Ask(second).cached, 256);
  EXPECT_EQ(count().used, room);
  two.reset();
  EXPECT_EQ(count().bytes, 0u);
  // The engine does not wait for a prefetch that is not needed any more.
  auto three = engine_->Prefetch("", first);
  three.reset();
  engine_.reset();
}

// A session goes on with other tokens while its blocks are looked for.
TEST_F(BlockKeeperTest, BlocksOfTokensThatWereTakenBackAreNotUsed) {
  const Tokens first = Some(200, 9), second = Some(200, 10);
  Load(OnDisk());
  Ask(first);
  const Answer other = Ask(second, std::nullopt, 0);
  Load(OnDisk());
  SessionOptions options;
  options.sampler.temp = 0;
  options.prefix_space = "";
  auto session = Session::Create(engine_.get(), options);
  ASSERT_TRUE(session.ok());
  for (int i = 0; i < 20; ++i) {
    (*session)->Truncate(0);
    ASSERT_TRUE((*session)->Append(first).ok());
    (*session)->Cancel();
    EXPECT_EQ((*session)->Evaluate().code(), absl::StatusCode::kCancelled);
    (*session)->Truncate(0);
    ASSERT_TRUE((*session)->Append(second).ok());
    ASSERT_TRUE((*session)->Evaluate().ok());
    EXPECT_EQ(other.row,
              std::vector<float>((*session)->logits().begin(), (*session)->logits().end()));
  }
}

}  // namespace
}  // namespace trine
