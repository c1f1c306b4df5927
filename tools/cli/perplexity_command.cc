// trine perplexity: how well a model predicts a text.
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/generate.h"
#include "runtime/sampling/logprobs.h"
#include "tools/cli/commands.h"
#include "tools/cli/engine_arguments.h"
#include "tools/cli/progress.h"
#include "tools/cli/read_input.h"

namespace trine {
namespace {

struct PerplexityArguments {
  EngineArguments engine;
  PromptSource text;
  int64_t chunks = -1;
  bool json = false;
};

struct Score {
  double sum = 0;  // of -log p
  double squares = 0;
  int64_t count = 0;

  double Perplexity() const { return std::exp(sum / static_cast<double>(count)); }
  // Of the perplexity, from the deviation of the single tokens.
  double Error() const {
    if (count < 2) return 0;
    const double mean = sum / static_cast<double>(count);
    const double variance = squares / static_cast<double>(count) - mean * mean;
    return std::sqrt(std::max(0.0, variance) / static_cast<double>(count - 1)) * Perplexity();
  }
};

// Contexts one after the other; of each, the tokens of the second half are scored, so that every
// scored token has at least half a context before it.
absl::StatusOr<Score> Measure(Engine* engine, const std::vector<int32_t>& tokens, int64_t chunks,
                              bool print) {
  const int64_t width = engine->context();
  Score score;
  Progress progress("perplexity");
  for (int64_t c = 0; c < chunks; ++c) {
    const auto first_token = tokens.begin() + static_cast<ptrdiff_t>(c * width);
    std::vector<int32_t> chunk(first_token, first_token + static_cast<ptrdiff_t>(width));
    // A model that was trained with a BOS in front is not asked to do without.
    if (engine->tokenizer()->adds_bos()) chunk[0] = engine->tokenizer()->bos();
    const std::unique_ptr<Sequence> sequence = engine->NewSequence();
    const int64_t first = width / 2;
    const auto observe = [&](int64_t position, std::span<const float> row) {
      if (position + 1 >= width) return;
      const int32_t next = chunk[static_cast<size_t>(position) + 1];
      const double loss = -LogSoftmax(row).Of(row[static_cast<size_t>(next)]);
      score.sum += loss;
      score.squares += loss * loss;
      ++score.count;
    };
    sequence->set_row_observer(observe, first);
    if (absl::Status s = sequence->Append(chunk); !s.ok()) return s;
    Sequence* const sequences[] = {sequence.get()};
    if (absl::Status s = engine->Evaluate(sequences); !s.ok()) return s;
    progress.Update(static_cast<double>(c + 1) / static_cast<double>(chunks));
    if (print) {
      progress.Clear();
      std::printf("[%lld]%.4f%s", static_cast<long long>(c + 1), score.Perplexity(),
                  c + 1 == chunks ? "\n" : ",");
      std::fflush(stdout);
    }
  }
  return score;
}

int Perplexity(PerplexityArguments a) {
  if (a.engine.list_devices) {
    PrintDevices(a.engine);
    return 0;
  }
  const auto text = ReadPrompt(a.text);
  if (!text.ok()) return Complain(text.status());
  if (a.engine.context == EngineOptions::kDefaultContext) a.engine.context = 512;
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
  const auto score = Measure(engine->get(), *tokens, chunks, !a.json);
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
  return 0;
}

}  // namespace

void AddPerplexityCommand(CLI::App* app, Run* run) {
  auto a = std::make_shared<PerplexityArguments>();
  CLI::App* command = app->add_subcommand(
      "perplexity",
      "Measure how well a model predicts a text: contexts of -c tokens (default 512), not "
      "overlapping, the second half of each scored");
  AddPromptOptions(command, "The text; special tokens do not count in it", &a->text);
  command->add_option("--chunks", a->chunks, "Contexts to look at; -1: all")
      ->check(CLI::Range(-1, 1 << 30))
      ->capture_default_str();
  command->add_flag("--json", a->json, "Print JSON");
  AddEngineOptions(command,
                   "Tokens of a context; 0: as many as the model was trained with (default: 512)",
                   &a->engine);
  command->callback([a, run] { *run = [a] { return Perplexity(*a); }; });
}

}  // namespace trine
