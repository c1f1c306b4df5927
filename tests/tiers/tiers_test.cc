// CPU, Vulkan and HIP in one process, the GPUs by their software drivers: the CPU's bits whatever
// is where, whatever is shared, and whichever way passes take.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/generate.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::IsSupersetOf;

constexpr int64_t kLayers = 5;

class TiersTest : public testing::Test {
 protected:
  TiersTest() : file_(Model()) {}

  static std::vector<std::byte> Model() {
    TinyModelSpec spec;
    spec.n_layers = kLayers;
    spec.n_ctx = 512;
    spec.type = quant::Type::kQ8_0;
    spec.n_embd = 128;
    spec.n_ff = 256;
    return MakeTinyModel(spec).ToBytes();
  }

  EngineOptions Options() const {
    EngineOptions options = TestOptions(file_.path());
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_VULKAN_PLUGIN,
                                             TRINE_HIP_PLUGIN};
    options.threads = 1;
    return options;
  }

  // Some of the tiers in any order, with layers or shares.
  static std::string RandomSplit(std::mt19937* random, bool rows) {
    std::vector<std::string> devices = {"cpu", "igpu", "dgpu"};
    std::shuffle(devices.begin(), devices.end(), *random);
    devices.resize((rows ? 2 : 1) + (*random)() % (rows ? 2 : 3));
    std::vector<int64_t> counts(devices.size(), 1);
    for (auto left = kLayers - static_cast<int64_t>(devices.size()); left > 0; --left) {
      ++counts[(*random)() % counts.size()];
    }
    std::string split;
    for (size_t i = 0; i < devices.size(); ++i) {
      absl::StrAppend(&split, i == 0 ? "" : ",", devices[i], ":", counts[i]);
    }
    return split;
  }

  static std::vector<std::string> Together(Engine* engine,
                                           const std::vector<std::vector<int32_t>>& prompts,
                                           const std::vector<int64_t>& lengths, uint64_t seed) {
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> pointers;
    std::vector<GenerateOptions> options(prompts.size());
    std::vector<Generation> results(prompts.size());
    for (size_t i = 0; i < prompts.size(); ++i) {
      SessionOptions session_options;
      session_options.logits_hash = true;
      session_options.ignore_eos = true;
      session_options.sampler.seed = seed + i;
      auto session = Session::Create(engine, session_options);
      EXPECT_TRUE(session.ok()) << session.status();
      EXPECT_TRUE((*session)->Append(prompts[i]).ok());
      sessions.push_back(*std::move(session));
      pointers.push_back(sessions.back().get());
      options[i].max_tokens = lengths[i];
    }
    const absl::Status status = GenerateTogether(pointers, options, results);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<std::string> said;
    for (size_t i = 0; i < results.size(); ++i) {
      said.push_back(absl::StrCat(sessions[i]->logits_hash().Text(), " ", results[i].text));
    }
    return said;
  }

  TempFile file_;
};

TEST_F(TiersTest, AllThreeAreThere) {
  EngineOptions options = Options();
  options.tensor_split = "cpu:1,igpu:2,dgpu:2";
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  std::vector<std::string> names;
  for (const SegmentPlace& place : engine->model()->places()) names.push_back(place.device_name);
  EXPECT_THAT(names, IsSupersetOf({"cpu", "igpu0", "dgpu0"}));
}

TEST_F(TiersTest, NeitherSplitNorModeNorWayShows) {
  EngineOptions cpu = Options();
  cpu.tensor_split = "cpu:100%";
  const auto alone = MustLoad(cpu);
  ASSERT_NE(alone, nullptr);
  std::mt19937 random(1);
  const int rounds = std::getenv("TRINE_LONG") != nullptr ? 300 : 100;
  int detours = 0, rows = 0;
  for (int round = 0; round < rounds; ++round) {
    EngineOptions options = Options();
    const bool by_rows = random() % 4 == 0;
    options.split_mode = by_rows ? SplitMode::kRow : SplitMode::kLayer;
    options.tensor_split = RandomSplit(&random, by_rows);
    if (random() % 4 == 0) options.override_tensors = {"ffn_(up|gate)=dgpu"};
    if (random() % 2 == 0) options.dispatch.from_tokens = 1 + static_cast<int64_t>(random() % 9);
    options.batch_tokens = 1 + static_cast<int64_t>(random() % 40);
    options.pack = random() % 3 != 0;
    std::vector<std::vector<int32_t>> prompts(1 + random() % 4);
    std::vector<int64_t> lengths;
    for (std::vector<int32_t>& prompt : prompts) {
      prompt.resize(1 + random() % 24);
      for (int32_t& token : prompt) token = static_cast<int32_t>(random() % 256);
      lengths.push_back(static_cast<int64_t>(random() % 4));
    }
    options.max_sequences = static_cast<int64_t>(prompts.size());
    SCOPED_TRACE(absl::StrCat("round ", round, ": ", by_rows ? "rows " : "", options.tensor_split,
                              options.override_tensors.empty() ? "" : ", ffn on dgpu", ", from ",
                              options.dispatch.from_tokens, " tokens on, ", options.batch_tokens,
                              " a pass", options.pack ? "" : ", not packed"));
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    const std::vector<std::string> said = Together(engine.get(), prompts, lengths, 7);
    for (size_t i = 0; i < prompts.size(); ++i) {
      ASSERT_EQ(said[i], Together(alone.get(), {prompts[i]}, {lengths[i]}, 7 + i)[0]) << i;
    }
    rows += by_rows ? 1 : 0;
    for (const SegmentCounters& segment : engine->segments()) {
      detours += segment.detours > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(detours, rounds / 10) << "too few took one";
  EXPECT_GT(rows, rounds / 10);
}

}  // namespace
}  // namespace trine
