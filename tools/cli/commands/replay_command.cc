// trine replay: runs a capture again and shows the first value that differs.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/graph/capture_file.h"
#include "runtime/graph/graph_model.h"
#include "runtime/graph/replay.h"
#include "runtime/pack_cache/hash64.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/terminal/progress.h"

namespace trine {
namespace {

struct ReplayArguments {
  EngineArguments engine;
  std::string path;
  bool ops = false;
};

// Returns the name that ParseKvType reads; "" for a type that a cache can't have.
std::string KvTypeName(uint32_t type) {
  for (const char* name : {"f16", "f32", "bf16", "q8_0"}) {
    if (ParseKvType(name).value_or(0) == type) return name;
  }
  return "";
}

absl::StatusOr<EngineOptions> OptionsFor(const ReplayArguments& a, const CaptureFile& capture) {
  const CaptureHead& head = capture.head();
  if (head.numerics != TRINE_NUMERICS_VERSION) {
    return absl::InvalidArgumentError(absl::StrCat("the capture follows numerics ", head.numerics,
                                                   ", this program ", TRINE_NUMERICS_VERSION,
                                                   ": their bits may differ"));
  }
  EngineArguments arguments = a.engine;
  if (arguments.model_path.empty()) arguments.model_path = head.model;
  EngineOptions options = EngineOptionsOf(arguments);
  options.context = static_cast<int64_t>(head.context);
  options.kv_type_k = KvTypeName(head.kv_type_k);
  options.kv_type_v = KvTypeName(head.kv_type_v);
  size_t most = 1;
  for (const CapturedPass& pass : capture.passes()) most = std::max(most, pass.tokens.size());
  options.batch_tokens = static_cast<int64_t>(most);
  options.taps = a.ops ? TapLevel::kOps : head.level;
  const auto file = gguf::File::Open(options.model_path);
  if (!file.ok()) return file.status();
  if (ModelId(**file) != head.model_id) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.model_path, " is another model than the one that was captured, ", head.model));
  }
  return options;
}

std::string Count(uint64_t n, const char* what) {
  return absl::StrCat(n, " ", what, n == 1 ? "" : what == std::string("pass") ? "es" : "s");
}

int ReplayCapture(const ReplayArguments& a) {
  const auto capture = CaptureFile::Open(a.path);
  if (!capture.ok()) return Complain(capture.status());
  auto options = OptionsFor(a, **capture);
  if (!options.ok()) return Complain(options.status());
  Progress loading("loading");
  options->progress = [&](double fraction) { return loading.Update(fraction); };
  const auto loaded = LoadGraphModel(*options);
  loading.Clear();
  if (!loaded.ok()) return Complain(loaded.status());
  const auto graph = ExecutionGraph::Create((*loaded)->model);
  if (!graph.ok()) return Complain(graph.status());
  const CaptureHead& head = (*capture)->head();
  const bool exact = options->plugins.numerics == TRINE_NUMERICS_EXACT;
  if (head.fast || !exact) {
    std::fprintf(stderr,
                 "trine: the capture was made with %s numerics and is replayed with %s ones: "
                 "differences are no faults\n",
                 head.fast ? "fast" : "exact", exact ? "exact" : "fast");
  }
  Progress progress("replaying");
  ReplayOptions replay;
  replay.ops = a.ops;
  replay.progress = [&](size_t done, size_t total) { progress.Update(done, total); };
  const auto result = Replay(**capture, replay, graph->get());
  progress.Clear();
  if (!result.ok()) return Complain(result.status());
  if (!result->difference) {
    std::printf("identical: %s, %s, %s compared\n", Count(result->passes, "pass").c_str(),
                Count(result->ops, "op").c_str(), Count(result->values, "value").c_str());
    return 0;
  }
  std::string text = absl::StrCat("different: ", Describe(*result->difference));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::printf("%s\n", Printable(std::string(line)).c_str());
  }
  if ((*capture)->head().level == TapLevel::kLayers) {
    std::printf("the capture has layers alone: --capture-level ops says which op it was\n");
  }
  return 1;
}

}  // namespace

void AddReplayCommand(Command app, Run* run) {
  auto [command, a] = NewCommand<ReplayArguments>(
      app, run, ReplayCapture, "replay",
      "Run a capture (generate --capture) again, perhaps on another device, and compare it bit for "
      "bit: prints the first layer or op that gives something else, and exits with 1 then");
  command.AddOption("FILE", a->path, "The capture").Required().Check(NotEmpty);
  command
      .AddOption("-m,--model", a->engine.model_path,
                 "GGUF file (default: the one that was captured)")
      .Check(NotEmpty);
  command.AddFlag("--ops", a->ops,
                  "Run every op by itself, not whole layers as they are run together");
  PlacementRequest* const request = &a->engine.placement;
  command.AddParsed(
      "--tensor-split",
      [request](const std::string& text) { return ParseSplitOption(text, request); },
      "Layers per tier or device, as in generate; also -ts");
  command
      .AddOption("--device", request->devices,
                 "Keep to these tiers or devices, separated by commas; also -dev")
      .Delimiter(',')
      .Check(NotEmpty)
      .Excludes({"--tensor-split"});
  AddTeamOption(command, &a->engine.team);
  command.AddOption("-t,--threads", a->engine.threads, "CPU threads; 0: one per core")
      .Range(0, 1024)
      .ShowDefault();
  AddPluginOptions(command, &a->engine.plugins);
  command.AddFlagOff("--no-pack", a->engine.pack, "Keep weights as they are in the file");
}

}  // namespace trine
