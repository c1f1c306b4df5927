// sharing-bench [MODEL]: measures the time to the first token with and without a prefix that
// another session has read, and how a long prompt disturbs a stream of tokens, with and without a
// limit for mixed passes. A tool, not a test.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/engine/generate.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;
using Tokens = std::vector<int32_t>;

double MsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}
double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}
Tokens Text(int64_t n, uint32_t seed) {
  Tokens tokens;
  for (int64_t i = 0; i < n; ++i) {
    seed = seed * 1664525 + 1013904223;
    tokens.push_back(static_cast<int32_t>(300 + (seed >> 16) % 3000));
  }
  return tokens;
}

class Bench {
 public:
  Bench(const std::string& model, int64_t mixed_tokens) {
    EngineOptions options;
    options.model_path = model;
    options.context = 2048;
    options.max_sequences = 16;
    options.mixed_tokens = mixed_tokens;
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN};
    options.plugins.search.use_environment = false;
    options.plugins.search.use_default_folders = false;
    auto engine = Engine::Load(options);
    if (!engine.ok()) Fail(engine.status());
    engine_ = *std::move(engine);
  }

  // Returns the time to the first token in ms.
  double FirstToken(const Tokens& prompt, std::optional<std::string> space, int64_t* cached) {
    const auto session = Open(std::move(space), prompt);
    return Go(session.get(), 1, nullptr, cached).front();
  }

  // Decodes one stream, alone or beside a prompt. Returns the times between its tokens, and how
  // long the prompt took.
  std::vector<double> Beside(int64_t prompt_tokens, double* prompt_ms) {
    const auto stream = Open(std::nullopt, Text(8, 1));
    Go(stream.get(), 16, nullptr, nullptr);
    std::atomic<bool> read = prompt_tokens == 0;
    const auto begin = Clock::now();
    std::thread other([&] {
      if (prompt_tokens == 0) return;
      const auto session = Open(std::nullopt, Text(prompt_tokens, 2));
      if (absl::Status s = session->Evaluate(); !s.ok()) Fail(s);
      *prompt_ms = MsSince(begin);
      read = true;
    });
    std::vector<double> gaps = Go(stream.get(), prompt_tokens == 0 ? 60 : 1500, &read, nullptr);
    other.join();
    return gaps;
  }

  double TokensPerSecond(size_t streams) {
    constexpr int64_t kEach = 60;
    std::vector<std::thread> threads;
    const auto begin = Clock::now();
    for (size_t i = 0; i < streams; ++i) {
      threads.emplace_back([&, i] {
        const auto session = Open(std::nullopt, Text(4, static_cast<uint32_t>(i)));
        Go(session.get(), kEach, nullptr, nullptr);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return static_cast<double>(kEach) * static_cast<double>(streams) * 1000 / MsSince(begin);
  }

 private:
  [[noreturn]] static void Fail(const absl::Status& status) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(1);
  }
  std::unique_ptr<Session> Open(std::optional<std::string> space, const Tokens& prompt) {
    SessionOptions options;
    options.sampler.temp = 0;
    options.ignore_eos = true;
    options.prefix_space = std::move(space);
    auto session = Session::Create(engine_.get(), options);
    if (!session.ok()) Fail(session.status());
    if (absl::Status s = (*session)->Append(prompt); !s.ok()) Fail(s);
    return *std::move(session);
  }
  // Returns the times from token to token.
  static std::vector<double> Go(Session* session, int64_t n, const std::atomic<bool>* enough,
                                int64_t* cached) {
    std::vector<double> gaps;
    auto last = Clock::now();
    GenerateOptions options;
    options.max_tokens = n;
    options.on_token = [&](const SampleResult&) {
      gaps.push_back(MsSince(last));
      last = Clock::now();
      return enough == nullptr || n == 60 || !*enough;
    };
    Generation result;
    if (absl::Status s = Generate(session, options, &result); !s.ok()) Fail(s);
    if (cached != nullptr) *cached = result.cached_tokens;
    return gaps;
  }

  std::unique_ptr<Engine> engine_;
};

void FirstTokens(const std::string& model) {
  Bench bench(model, 0);
  const Tokens common = Text(1000, 9);
  std::printf("prompt of 1000 common tokens and 20 more: ms to the first token, median of 7\n");
  for (const bool share : {false, true}) {
    std::vector<double> times;
    int64_t cached = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      Tokens prompt = common;
      for (const int32_t token : Text(20, 100 + i)) prompt.push_back(token);
      const double ms =
          bench.FirstToken(prompt, share ? std::optional<std::string>("a") : std::nullopt, &cached);
      if (i > 0) times.push_back(ms);  // the first one reads it
    }
    std::printf("  %-10s %8.1f  (%d tokens not read)\n", share ? "shared" : "not shared",
                Quantile(times, 0.5), static_cast<int>(cached));
  }
}

void Streams(const std::string& model) {
  std::printf("\nms between the tokens of a stream, beside a prompt of 1800 tokens\n");
  std::printf("  %-12s %8s %8s %8s %8s %10s\n", "mixed_tokens", "tokens", "median", "p95", "most",
              "prompt ms");
  for (const int64_t mixed : {-1, 0, 256, 128, 64, 32}) {
    Bench bench(model, std::max<int64_t>(mixed, 0));
    double prompt_ms = 0;
    const std::vector<double> gaps = bench.Beside(mixed < 0 ? 0 : 1800, &prompt_ms);
    const std::string name = mixed < 0 ? "alone" : mixed == 0 ? "no limit" : std::to_string(mixed);
    std::printf("  %-12s %8zu %8.1f %8.1f %8.1f %10.0f\n", name.c_str(), gaps.size(),
                Quantile(gaps, 0.5), Quantile(gaps, 0.95), Quantile(gaps, 1), prompt_ms);
  }
  std::printf("\ntokens/s of streams with a thread each\n");
  std::printf("  %-8s %10s %10s\n", "streams", "no limit", "limit 64");
  Bench none(model, 0), limited(model, 64);
  for (const size_t streams : {1, 4, 16}) {
    const double without = none.TokensPerSecond(streams);
    std::printf("  %-8zu %10.1f %10.1f\n", streams, without, limited.TokensPerSecond(streams));
  }
}

}  // namespace
}  // namespace trine

int main(int argc, char** argv) {
  const std::string model = argc > 1 ? argv[1] : TRINE_SHIPPED_MODEL;
  trine::FirstTokens(model);
  trine::Streams(model);
  return 0;
}
