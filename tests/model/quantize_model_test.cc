// Runs models quantised here: compares them with the model they were made from, and with files that
// llama.cpp made of it.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/engine/perplexity.h"
#include "runtime/quantize/quantize.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

// A quantised file that is removed after the test.
class QuantizedModel {
 public:
  QuantizedModel(const std::string& source, const char* mix, bool allow_requantize) {
    path_ = testing::TempDir() + "/quantized-" + std::to_string(getpid()) + "-" + mix + ".gguf";
    const auto file = gguf::File::Open(source);
    EXPECT_TRUE(file.ok()) << file.status();
    if (!file.ok()) return;
    quantize::PlanOptions options;
    options.mix = *quantize::FindMix(mix);
    options.allow_requantize = allow_requantize;
    const auto plan = quantize::MakePlan(**file, options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return;
    quantize::QuantizeOptions run;
    run.threads = 4;
    const auto result = quantize::Quantize(**file, *plan, path_, run);
    EXPECT_TRUE(result.ok()) << result.status();
  }
  ~QuantizedModel() { std::filesystem::remove(path_); }
  QuantizedModel(const QuantizedModel&) = delete;
  QuantizedModel& operator=(const QuantizedModel&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

size_t BestOf(const std::vector<float>& row) {
  return static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

constexpr char kText[] =
    "Once upon a time there was a king who had three sons. The eldest was proud, the second was "
    "idle, and the youngest was kind to every living thing he met upon the road.";

// Quantises the shipped model: only the mix's own loss shows in the logits.
TEST(QuantizedModelTest, RunsLikeTheModelItWasMadeFrom) {
  const auto original = MustLoad(TestOptions(ShippedModel()));
  ASSERT_NE(original, nullptr);
  const auto tokens = original->tokenizer()->Encode(kText, {.add_special = true});
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  const auto expected = AllLogits(original.get(), *tokens);

  const QuantizedModel file(ShippedModel(), "Q4_K_M", true);
  const auto quantized = MustLoad(TestOptions(file.path()));
  ASSERT_NE(quantized, nullptr);
  const auto rows = AllLogits(quantized.get(), *tokens);
  ASSERT_EQ(rows.size(), expected.size());
  double sum = 0;
  size_t count = 0, same = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t v = 0; v < rows[i].size(); ++v) sum += std::abs(rows[i][v] - expected[i][v]);
    count += rows[i].size();
    same += BestOf(rows[i]) == BestOf(expected[i]);
  }
  const double difference = sum / static_cast<double>(count);
  std::printf("  mean difference of logits %.4f, best token the same in %zu of %zu rows\n",
              difference, same, rows.size());
  EXPECT_LE(difference, 0.5);
  EXPECT_GT(difference, 0.01);  // four bits can not be as good as eight
  EXPECT_GE(same * 10, rows.size() * 8);
}

double PerplexityOf(const std::string& model, const std::string& text, int64_t contexts) {
  EngineOptions options = TestOptions(model);
  options.context = 512;
  const auto engine = MustLoad(options);
  if (engine == nullptr) return 0;
  const auto tokens = engine->tokenizer()->Encode(text, {.add_special = false});
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  const auto score = MeasurePerplexity(engine.get(), *tokens, contexts);
  EXPECT_TRUE(score.ok()) << score.status();
  return score.ok() ? score->Perplexity() : 0;
}

struct Peer {
  const char* mix;
  const char* model;  // a file of llama.cpp's, "" where there is none
  double above_f16;   // without one: how much worse than the source it may be
};
constexpr Peer kPeers[] = {
    {"Q4_K_M", "tales-27m-q4_k_m", 0},
    {"Q4_0", "tales-27m-q4_0", 0},
    {"Q8_0", "tales-27m-q8_0", 0},
    {"Q5_K_M", "", 0.010},
    {"Q6_K", "", 0.004},
};

// At most half a percent worse than the same mix of llama.cpp. The noise of so little text is about
// as much.
TEST(QuantizedModelTest, PerplexityIsThatOfThePeer) {
  const std::string shared = SharedFolder();
  if (shared.empty()) GTEST_SKIP() << "the shared folder is absent";
  std::stringstream text;
  text << std::ifstream(shared + "/golden/perplexity.txt").rdbuf();
  const bool is_long = std::getenv("TRINE_LONG") != nullptr;
  const int64_t contexts = is_long ? 20 : 3;
  const std::string source = shared + "/models/tales-27m-f16.gguf";
  const double f16 = is_long ? PerplexityOf(source, text.str(), contexts) : 0;
  for (const Peer& peer : kPeers) {
    const QuantizedModel file(source, peer.mix, false);
    const double ours = PerplexityOf(file.path(), text.str(), contexts);
    const bool has_file = peer.model[0] != '\0';
    const double theirs =
        has_file ? PerplexityOf(shared + "/models/" + peer.model + ".gguf", text.str(), contexts)
                 : f16;
    std::printf("  %s: perplexity %.4f, %s %.4f\n", peer.mix, ours,
                has_file ? "llama.cpp's file" : "the source", theirs);
    EXPECT_LE(ours, theirs * (1 + (has_file ? 0.005 : peer.above_f16))) << peer.mix;
    EXPECT_GE(ours, theirs * 0.98) << peer.mix;
    if (!is_long) break;
  }
}

}  // namespace
}  // namespace trine
