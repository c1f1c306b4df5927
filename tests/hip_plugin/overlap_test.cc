// Runs the CPU and the emulated GPU at the same time, each with real layers: that takes less time
// than one after the other, and the trace shows it.
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/engine/generate.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

// The times of the stages, each by itself and together.
struct Times {
  double gpu_ms = 0, cpu_ms = 0, wall_ms = 0;
  double processor_ms = 0;  // CPU time of all threads, independent of other programs
  double both_ms = 0;       // time in which both ran, by the trace
  double share() const { return wall_ms / (gpu_ms + cpu_ms); }
};

int Processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

double ProcessorMs() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

class HipOverlapTest : public testing::Test {
 protected:
  HipOverlapTest() : trace_(std::vector<std::byte>{}) {}

  struct Span {
    double begin, end;
  };

  // Returns the runs of plans on a device's track, in milliseconds.
  std::vector<Span> Runs(const std::string& device) const {
    const auto json = nlohmann::json::parse(std::ifstream(trace_.path()), nullptr, false);
    EXPECT_FALSE(json.is_discarded());
    std::vector<Span> spans;
    std::map<int64_t, std::string> tracks;
    for (const auto& event : json["traceEvents"]) {
      if (event.value("name", "") == "thread_name") tracks[event["tid"]] = event["args"]["name"];
    }
    for (const auto& event : json["traceEvents"]) {
      if (event.value("name", "") != "run" || tracks[event["tid"]].rfind(device, 0) != 0) continue;
      const double begin = event["ts"].get<double>() / 1000;
      spans.push_back({begin, begin + event["dur"].get<double>() / 1000});
    }
    return spans;
  }

  // Runs four sequences with one layer on the GPU and all others on the CPU.
  Times Run(int64_t layers) {
    TinyModelSpec spec;
    spec.n_layers = layers;
    const TempFile file(MakeTinyModel(spec).ToBytes());
    EngineOptions options = TestOptions(file.path());
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_HIP_PLUGIN};
    options.placement.split = SplitOf(absl::StrCat("dgpu:1,cpu:", layers - 1));
    options.threads = 1;
    options.context = 64;
    options.max_sequences = 4;
    options.trace = trace_.path();
    const auto engine = MustLoad(options);
    Times times;
    if (engine == nullptr) return times;
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> pointers;
    std::vector<GenerateOptions> generate(4);
    std::vector<Generation> results(4);
    for (size_t i = 0; i < 4; ++i) {
      SessionOptions session_options;
      session_options.ignore_eos = true;
      auto session = Session::Create(engine.get(), session_options);
      EXPECT_TRUE(session.ok()) << session.status();
      const std::vector<int32_t> prompt(3, static_cast<int32_t>(40 + i));
      EXPECT_TRUE((*session)->Append(prompt).ok());
      sessions.push_back(*std::move(session));
      pointers.push_back(sessions.back().get());
      generate[i].max_tokens = 16;
    }
    const double processor_ms = ProcessorMs();
    const Clock::time_point begin = Clock::now();
    const absl::Status status = GenerateTogether(pointers, generate, results);
    times.wall_ms = Milliseconds(Clock::now() - begin).count();
    times.processor_ms = ProcessorMs() - processor_ms;
    EXPECT_TRUE(status.ok()) << status;
    for (const SegmentCounters& segment : engine->segments()) {
      const double ms = static_cast<double>(segment.stage.busy_ns) / 1e6;
      (segment.device_name == "cpu" ? times.cpu_ms : times.gpu_ms) += ms;
    }
    EXPECT_TRUE(engine->WriteTrace().ok());
    const std::vector<Span> cpu = Runs("cpu");
    for (const Span& a : Runs("dgpu0")) {
      for (const Span& b : cpu) {
        times.both_ms += std::max(0.0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
      }
    }
    std::printf(
        "  %d layers: dgpu %.0f ms, cpu %.0f ms, together %.0f ms: %.2f; both for %.0f ms; %.0f ms "
        "of processors\n",
        static_cast<int>(layers), times.gpu_ms, times.cpu_ms, times.wall_ms, times.share(),
        times.both_ms, times.processor_ms);
    return times;
  }

  TempFile trace_;
};

TEST_F(HipOverlapTest, FourSequencesTakeLessThanTheStagesOneAfterTheOther) {
  if (Processors() < 2) GTEST_SKIP() << "one processor: nothing runs beside anything else";
  // Find by trying how many layers on the CPU take about as long as the GPU's.
  int64_t layers = 65;
  Times best;
  for (int i = 0; i < 8; ++i) {
    const Times times = Run(layers);
    if (HasFailure()) return;
    const double ratio = times.gpu_ms / times.cpu_ms;
    if (best.wall_ms == 0 || times.share() < best.share()) best = times;
    if (best.share() < 0.75 && best.both_ms > 0.2 * best.wall_ms) break;
    const auto wanted = static_cast<int64_t>(static_cast<double>(layers) * ratio);
    layers = std::clamp<int64_t>(wanted, 2, 600);
  }
  EXPECT_LT(best.share(), 0.75);
  EXPECT_GT(best.both_ms, 0.2 * best.wall_ms) << "the trace shows no overlap";
}

}  // namespace
}  // namespace trine
