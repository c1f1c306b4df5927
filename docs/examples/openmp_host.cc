// A program that computes with OpenMP between tokens, as a game or a simulation does. Prints how
// long a step of its own takes: without Trine, with Trine on threads of its own, and with Trine on
// the program's OpenMP threads. Both times it generates the same text.
//
//   c++ -std=c++20 -O2 -fopenmp openmp_host.cc $(pkg-config --cflags --libs trine) -o openmp_host
//   ./openmp_host model.gguf "Once upon a time"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <trine/trine.hpp>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTokens = 64;

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// What the program is really for.
class Simulation {
 public:
  Simulation() : heights_(16384, 1.0f) {}

  void Step() {
    const Clock::time_point begin = Clock::now();
    const int size = static_cast<int>(heights_.size());
#pragma omp parallel for
    for (int i = 0; i < size; ++i) heights_[i] = Settled(heights_[i], i);
    steps_.push_back(Milliseconds(Clock::now() - begin));
  }
  double MedianStep() const { return Median(steps_); }

 private:
  static float Settled(float height, int place) {
    for (int i = 0; i < 16; ++i) height = std::sqrt(height + std::sin(0.01f * place + height));
    return height;
  }

  std::vector<float> heights_;
  std::vector<double> steps_;
};

struct Measured {
  std::string text;
  double step_ms = 0;
  double token_ms = 0;
};

// Generates a text with a step of the simulation after each token. `team`: "own" or "openmp".
trine::api::Result<Measured> Play(const char* model, const char* prompt, const char* team) {
  trine_engine_options options{};
  options.model = model;
  options.team = team;
  const auto engine = trine::api::Engine::Open(options);
  if (!engine) return engine.status();
  auto session = engine->OpenSession();
  if (!session) return session.status();
  if (auto status = session->AppendText(prompt); !status.ok()) return status;
  Simulation simulation;
  std::vector<double> tokens;
  Measured measured;
  trine::api::GenerateOptions generate;
  generate.max_tokens = kTokens;
  generate.on_text = [&](std::string_view text) {
    measured.text.append(text);
    return true;
  };
  Clock::time_point begin = Clock::now();
  generate.on_token = [&](const trine_token_event&) {
    tokens.push_back(Milliseconds(Clock::now() - begin));
    simulation.Step();
    begin = Clock::now();
    return true;
  };
  if (const auto result = session->Generate(generate); !result) return result.status();
  if (!tokens.empty()) tokens.erase(tokens.begin());  // it includes the prompt
  measured.step_ms = simulation.MedianStep();
  measured.token_ms = Median(tokens);
  return measured;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MODEL.gguf PROMPT\n", argv[0]);
    return 2;
  }
  Simulation alone;
  for (int i = 0; i < kTokens; ++i) alone.Step();
  std::printf("without Trine: %.3f ms for a step\n", alone.MedianStep());
  std::string text;
  for (const char* team : {"own", "openmp"}) {
    const auto measured = Play(argv[1], argv[2], team);
    if (!measured) {
      std::fprintf(stderr, "%s\n", measured.status().message().c_str());
      return 1;
    }
    std::printf("team %s: %.3f ms for a step, %.3f ms for a token\n", team, measured->step_ms,
                measured->token_ms);
    if (text.empty()) text = measured->text;
    if (text != measured->text) {
      std::fprintf(stderr, "the teams wrote different texts\n");
      return 1;
    }
  }
  std::printf("%s%s\n", argv[2], text.c_str());
  return 0;
}
