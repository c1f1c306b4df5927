// trine perplexity: measures how well a model predicts a text.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/engine/perplexity.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/options/read_input.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/terminal/signals.h"

namespace trine {
namespace {

struct PerplexityArguments {
  EngineArguments engine;
  PromptSource text;
  int64_t chunks = -1;
  bool json = false;
};

// Prints the perplexity so far after each context.
void PrintSoFar(int64_t done, int64_t contexts, const PerplexityScore& score) {
  std::printf("[%lld]%.4f%s", static_cast<long long>(done), score.Perplexity(),
              done == contexts ? "\n" : ",");
  std::fflush(stdout);
}

int Perplexity(PerplexityArguments a) {
  const auto text = ReadPrompt(a.text);
  if (!text.ok()) return Complain(text.status());
  if (a.engine.context == EngineOptions::kDefaultContext) a.engine.context = 512;
  std::optional<OrderlyEnd> end;  // declared before the engine, which writes files when it ends
  const auto engine = LoadEngine(a.engine);
  if (!engine.ok()) return Complain(engine.status());
  const auto tokens = (*engine)->tokenizer()->Encode(*text, {.add_special = false});
  if (!tokens.ok()) return Complain(tokens.status());
  const int64_t width = (*engine)->context();
  if (width < 4) return Complain(absl::InvalidArgumentError("a context of 4 is the least"));
  int64_t chunks = static_cast<int64_t>(tokens->size()) / width;
  if (chunks == 0) {
    return Complain(absl::InvalidArgumentError(
        absl::StrCat("the text has ", tokens->size(), " tokens; one context takes ", width)));
  }
  if (a.chunks >= 0) chunks = std::min(chunks, a.chunks);
  if (chunks == 0) return Complain(absl::InvalidArgumentError("--chunks 0 leaves nothing to do"));
  Progress progress("perplexity");
  // Signals wait for the end of a context if the engine has a file to write.
  if (a.engine.writes_files()) end.emplace();
  const auto stopped = [&] { return end && end->raised(); };
  const auto score = MeasurePerplexity(engine->get(), *tokens, chunks,
                                       [&](int64_t done, const PerplexityScore& so_far) {
                                         if (!a.json) PrintSoFar(done, chunks, so_far);
                                         if (a.json) progress.Update(done, chunks);
                                         return !stopped();
                                       });
  progress.Clear();
  if (stopped()) return kInterrupted;
  if (!score.ok()) return Complain(score.status());
  if (a.json) {
    const nlohmann::ordered_json json = {{"perplexity", score->Perplexity()},
                                         {"error", score->Error()},
                                         {"tokens_scored", score->count},
                                         {"contexts", chunks},
                                         {"context", width}};
    std::printf("%s\n", json.dump(2).c_str());
  } else {
    std::printf("PPL = %.4f +/- %.4f (%lld tokens scored in %lld contexts of %lld)\n",
                score->Perplexity(), score->Error(), static_cast<long long>(score->count),
                static_cast<long long>(chunks), static_cast<long long>(width));
  }
  return Complain((*engine)->WriteTrace());
}

}  // namespace

void AddPerplexityCommand(Command app, Run* run) {
  auto [command, a] = NewCommand<PerplexityArguments>(
      app, run, Perplexity, "perplexity",
      "Measure how well a model predicts a text: contexts of -c tokens (default 512), not "
      "overlapping, the second half of each scored");
  AddPromptOptions(command, "The text; special tokens do not count in it", &a->text);
  command.AddOption("--chunks", a->chunks, "Contexts to look at; -1: all")
      .Range(-1, 1 << 30)
      .ShowDefault();
  command.AddFlag("--json", a->json, "Print JSON");
  AddEngineOptions(command, "Tokens of a context", &a->engine, "512");
}

}  // namespace trine
