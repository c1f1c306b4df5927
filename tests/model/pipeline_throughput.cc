#include "tests/model/pipeline_throughput.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "runtime/engine/generate.h"
#include "tests/model/temp_file.h"
#include "tests/model/tiny_model.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

// After so many tokens passes have settled into their groups.
constexpr int64_t kFirstTokens = 6;

EngineOptions Options(const PipelineLoad& load, const std::string& model) {
  EngineOptions options;
  options.model_path = model;
  options.plugins.search.explicit_paths = {load.cpu_plugin, load.several_plugin};
  options.plugins.search.use_environment = false;
  options.plugins.search.use_default_folders = false;
  options.threads = 1;
  options.max_sequences = load.sequences;
  for (int64_t i = 0; i < load.stages; ++i) {
    options.placement.split.push_back({absl::StrCat("several", i), SplitShare::Unit::kLayers, 1});
  }
  return options;
}

using Times = std::vector<Clock::time_point>;

absl::StatusOr<std::vector<Times>> TokenTimes(const PipelineLoad& load, Engine* engine) {
  const auto n = static_cast<size_t>(load.sequences);
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<Session*> pointers;
  std::vector<GenerateOptions> options(n);
  std::vector<Generation> results(n);
  std::vector<Times> times(n);
  for (size_t i = 0; i < n; ++i) {
    SessionOptions session_options;
    session_options.ignore_eos = true;
    auto session = Session::Create(engine, session_options);
    if (!session.ok()) return session.status();
    const int32_t prompt[] = {static_cast<int32_t>(i)};
    if (absl::Status s = (*session)->Append(prompt); !s.ok()) return s;
    sessions.push_back(*std::move(session));
    pointers.push_back(sessions.back().get());
    options[i].max_tokens = kFirstTokens + load.tokens;
    options[i].on_token = [&times, i](const SampleResult&) {
      times[i].push_back(Clock::now());
      return true;
    };
  }
  if (!load.threads) {
    const absl::Status s = GenerateTogether(pointers, options, results);
    if (!s.ok()) return s;
    return times;
  }
  std::vector<std::thread> threads;
  std::vector<absl::Status> statuses(n);
  for (size_t i = 0; i < n; ++i) {
    threads.emplace_back([&, i] { statuses[i] = Generate(pointers[i], options[i], &results[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& s : statuses) {
    if (!s.ok()) return s;
  }
  return times;
}

}  // namespace

absl::StatusOr<PipelineThroughput> MeasurePipeline(const PipelineLoad& load) {
  TinyModelSpec spec;
  spec.n_layers = load.stages;
  const TempFile file(MakeTinyModel(spec).ToBytes());
  setenv("TRINE_FIXTURE_SEVERAL", absl::StrCat(load.stage_time.count()).c_str(), 1);
  // Runs after the engine is gone.
  const absl::Cleanup unset = [] { unsetenv("TRINE_FIXTURE_SEVERAL"); };
  const auto engine = Engine::Load(Options(load, file.path()));
  if (!engine.ok()) return engine.status();
  const auto times = TokenTimes(load, engine->get());
  if (!times.ok()) return times.status();
  Clock::time_point begin = Clock::time_point::min(), end = Clock::time_point::max();
  for (const Times& t : *times) {
    begin = std::max(begin, t[kFirstTokens - 1]);
    end = std::min(end, t.back());
  }
  int64_t tokens = 0;
  for (const Times& t : *times) {
    tokens += std::count_if(t.begin(), t.end(),
                            [&](Clock::time_point at) { return at > begin && at <= end; });
  }
  using Seconds = std::chrono::duration<double>;
  PipelineThroughput result;
  result.tokens_per_s = static_cast<double>(tokens) / Seconds(end - begin).count();
  result.ideal_tokens_per_s = static_cast<double>(load.sequences) /
                              (static_cast<double>(load.stages) * Seconds(load.stage_time).count());
  return result;
}

}  // namespace trine
