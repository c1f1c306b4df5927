// pipeline-bench [STAGE_MS [STAGES SEQUENCES]]: measures which share of the ideal throughput the
// scheduler reaches with stages of a known time. By default, for several numbers of stages and
// sequences. A tool, not a test.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/model/pipeline_throughput.h"

namespace {

std::vector<int64_t> Numbers(const char* text, std::vector<int64_t> otherwise) {
  return text == nullptr ? otherwise : std::vector<int64_t>{std::atoll(text)};
}

}  // namespace

int main(int argc, char** argv) {
  trine::PipelineLoad load;
  load.cpu_plugin = TRINE_CPU_PLUGIN;
  load.several_plugin = TRINE_SEVERAL_PLUGIN;
  const double ms = argc > 1 ? std::atof(argv[1]) : 10;
  const std::vector<int64_t> stages_asked = Numbers(argc > 3 ? argv[2] : nullptr, {2, 3, 4});
  const std::vector<int64_t> sequences_asked =
      Numbers(argc > 3 ? argv[3] : nullptr, {1, 2, 3, 4, 8, 16});
  if (argc == 3 || argc > 4 || !(ms > 0) || stages_asked[0] < 1 || stages_asked[0] > 4 ||
      sequences_asked[0] < 1) {
    std::fprintf(stderr, "pipeline-bench [STAGE_MS [STAGES SEQUENCES]]\n");
    return 2;
  }
  load.stage_time = std::chrono::microseconds(static_cast<int64_t>(ms * 1000));
  std::printf("stages  sequences  called by      tokens/s     ideal  share\n");
  for (const bool threads : {false, true}) {
    load.threads = threads;
    for (const int64_t stages : stages_asked) {
      for (const int64_t sequences : sequences_asked) {
        load.stages = stages;
        load.sequences = sequences;
        const auto result = trine::MeasurePipeline(load);
        if (!result.ok()) {
          std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
          return 1;
        }
        std::printf("%6d  %9d  %-13s  %8.1f  %8.1f  %.3f\n", static_cast<int>(stages),
                    static_cast<int>(sequences), threads ? "a thread each" : "one thread",
                    result->tokens_per_s, result->ideal_tokens_per_s, result->efficiency());
        std::fflush(stdout);
      }
    }
  }
  return 0;
}
