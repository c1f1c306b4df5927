// trine embed: turns texts into vectors.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/engine/embed.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/options/read_input.h"
#include "tools/cli/output/embedding_writer.h"
#include "tools/cli/terminal/progress.h"

namespace trine {
namespace {

// The most texts whose vectors are held before they are written.
constexpr size_t kTextsAtOnce = 1024;

struct EmbedArguments {
  EngineArguments engine;
  PromptSource text;
  std::string separator = "\n";
  std::string pooling;  // "": the model's own
  int32_t normalize = kNormalizeEuclidean;
  EmbeddingFormat format = EmbeddingFormat::kJson;
};

// Splits the input into texts. Ignores an empty text after the last separator, because a file's
// last line ends in a newline too.
std::vector<std::string> SplitTexts(const std::string& text, const std::string& separator) {
  std::vector<std::string> texts = absl::StrSplit(text, absl::ByString(separator));
  if (texts.size() > 1 && texts.back().empty()) texts.pop_back();
  if (separator == "\n") {
    for (std::string& line : texts) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
    }
  }
  return texts;
}

absl::StatusOr<std::vector<std::vector<int32_t>>> Tokenize(const Engine& engine,
                                                           const std::vector<std::string>& texts) {
  std::vector<std::vector<int32_t>> all;
  for (const std::string& text : texts) {
    if (text.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("text ", all.size() + 1, " is empty: there is nothing to embed"));
    }
    auto tokens = engine.tokenizer()->Encode(text, {.add_special = true, .parse_special = true});
    if (!tokens.ok()) return tokens.status();
    all.push_back(*std::move(tokens));
  }
  return all;
}

absl::Status WriteVectors(const EmbedArguments& a, Engine* engine, const EmbedOptions& options,
                          const std::vector<TokenSpan>& texts) {
  EmbeddingWriter writer(stdout, a.format, static_cast<size_t>(engine->config().n_embd),
                         options.pooling == Pooling::kNone);
  Progress progress("embedding");
  int64_t n_tokens = 0;
  for (size_t done = 0; done < texts.size();) {
    const size_t n = std::min(texts.size() - done, kTextsAtOnce);
    auto vectors = Embed(engine, std::span(texts).subspan(done, n), options);
    if (!vectors.ok()) return vectors.status();
    progress.Clear();
    for (std::vector<float>& vector : *vectors) writer.Add(std::move(vector));
    for (size_t i = done; i < done + n; ++i) n_tokens += static_cast<int64_t>(texts[i].size());
    done += n;
    progress.Update(done, texts.size());
  }
  writer.Finish(n_tokens);
  return absl::OkStatus();
}

int EmbedTexts(EmbedArguments a) {
  const auto text = ReadPrompt(a.text);
  if (!text.ok()) return Complain(text.status());
  EmbedOptions options;
  options.normalize = a.normalize;
  if (!a.pooling.empty()) {
    const auto pooling = ParsePooling(a.pooling);
    if (!pooling.ok()) return ComplainOfArguments(pooling.status());
    options.pooling = *pooling;
  }
  a.engine.embeddings = true;
  const auto engine = LoadEngine(a.engine);
  if (!engine.ok()) return Complain(engine.status());
  if (!options.pooling.has_value()) {
    const auto pooling = DefaultPooling(**engine);
    if (!pooling.ok()) return Complain(pooling.status());
    options.pooling = *pooling;
  }
  if (options.pooling == Pooling::kNone && a.format == EmbeddingFormat::kJsonPlus) {
    return Complain(absl::InvalidArgumentError(
        "json+ compares texts, which have no vector of their own without pooling: see --pooling"));
  }
  const auto tokens = Tokenize(**engine, SplitTexts(*text, a.separator));
  if (!tokens.ok()) return Complain(tokens.status());
  const std::vector<TokenSpan> spans(tokens->begin(), tokens->end());
  // Check all texts before the first vector is written, so that an error in the last text is
  // reported first.
  absl::Status status = CheckTexts(**engine, spans);
  if (absl::IsOutOfRange(status)) {
    status = absl::OutOfRangeError(absl::StrCat(status.message(), ": -c takes more"));
  }
  if (status.ok()) status = WriteVectors(a, engine->get(), options, spans);
  if (status.ok()) status = (*engine)->WriteTrace();
  return Complain(status);
}

}  // namespace

void AddEmbedCommand(Command app, Run* run) {
  auto [command, a] = NewCommand<EmbedArguments>(
      app, run, EmbedTexts, "embed", "Turn texts into vectors: each line is a text of its own");
  a->engine.max_sequences = EngineOptions::kDefaultTexts;
  AddPromptOptions(command, "The texts; the model's special tokens count in them", &a->text);
  command
      .AddOption("--separator,--embd-separator", a->separator,
                 "Texts end where this appears instead of at the end of a line")
      .Check(NotEmpty)
      .ValueName("TEXT");
  command
      .AddOption("--pooling", a->pooling,
                 "How a text's tokens become one vector: none, mean, cls, last (default: what the "
                 "file says, or else last)")
      .Check(NotEmpty);
  command
      .AddOption("--embd-normalize", a->normalize,
                 "What a vector is divided by; -1: nothing, 0: its largest magnitude, to 32760, "
                 "1: taxicab, 2: Euclidean, more: that p-norm")
      .Range(kNormalizeNone, kLargestNorm)
      .ShowDefault();
  command
      .AddChoice("--embd-output-format", a->format,
                 {{"array", EmbeddingFormat::kArray},
                  {"json", EmbeddingFormat::kJson},
                  {"json+", EmbeddingFormat::kJsonPlus},
                  {"raw", EmbeddingFormat::kRaw}},
                 "array, json (default), json+ (with cosine similarities), raw")
      .DefaultText("");
  command.AddOption("--parallel", a->engine.max_sequences, "Most texts in one pass; also -np")
      .Range(1, 1024)
      .ShowDefault();
  AddEngineOptions(command, "Most tokens of a text", &a->engine);
}

}  // namespace trine
