// trine make-model: makes a model of random weights in the shape of a real one.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runtime/gguf/quoted.h"
#include "runtime/make_model/make_model.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/skew.h"
#include "runtime/quantize/mix.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/terminal/signals.h"
#include "tools/report/text_table.h"

namespace trine {
namespace {

constexpr uint32_t kMaxModelThreads = 256;
constexpr int64_t kMaxLayers = 512;
constexpr int64_t kMaxVocabulary = int64_t{1} << 22;

struct MakeModelArguments {
  std::string like;
  std::string type;
  std::string out;
  std::string split_max_size;
  int64_t layers = 0;  // 0 here and below: as the model has it
  int64_t vocab = 0;
  int64_t ctx = 0;
  int64_t seed = 1;
  int64_t expert_skew = 0;  // in percent
  uint32_t threads = 0;
  bool pure = false;
  bool list = false;
  bool dry_run = false;
};

// Parses "500M" or "2G": the tensor data of one file.
absl::StatusOr<uint64_t> ParseSize(const std::string& text) {
  absl::string_view number = text;
  uint64_t unit = 0;
  if (!number.empty()) {
    unit = absl::ascii_toupper(number.back()) == 'M'   ? 1'000'000
           : absl::ascii_toupper(number.back()) == 'G' ? 1'000'000'000
                                                       : 0;
    number.remove_suffix(1);
  }
  uint64_t count = 0;
  if (unit == 0 || !absl::SimpleAtoi(number, &count) || count == 0 ||
      count > std::numeric_limits<uint64_t>::max() / unit) {
    return absl::InvalidArgumentError(
        absl::StrCat("--split-max-size ", gguf::Quoted(text), " is no size; expected 500M or 2G"));
  }
  return count * unit;
}

absl::StatusOr<ModelShape> WantedShape(const MakeModelArguments& a) {
  absl::StatusOr<ModelShape> shape = FindPreset(a.like);
  if (!shape.ok()) return shape.status();
  if (a.layers > 0) shape->layers = a.layers;
  if (a.vocab > 0) shape->vocab = a.vocab;
  if (a.ctx > 0) shape->ctx = a.ctx;
  if (a.expert_skew == 0) return shape;
  if (shape->experts == 0) {
    return absl::InvalidArgumentError(absl::StrCat("--expert-skew: ", a.like, " has no experts"));
  }
  const auto factor =
      SkewFactor(shape->experts, shape->experts_used, static_cast<double>(a.expert_skew) / 100);
  if (!factor.ok()) return About("--expert-skew", factor.status());
  shape->router_skew = *factor;
  return shape;
}

absl::StatusOr<MakeModelOptions> WantedOptions(const MakeModelArguments& a) {
  MakeModelOptions options;
  options.seed = static_cast<uint64_t>(a.seed);
  options.threads = a.threads != 0
                        ? a.threads
                        : std::clamp(std::thread::hardware_concurrency(), 1u, kMaxModelThreads);
  if (!a.type.empty()) {
    const absl::StatusOr<const quantize::Mix*> mix = quantize::FindMix(a.type);
    if (!mix.ok()) return mix.status();
    options.mix = *mix;
    options.pure = a.pure;
  }
  if (!a.split_max_size.empty()) {
    const absl::StatusOr<uint64_t> size = ParseSize(a.split_max_size);
    if (!size.ok()) return size.status();
    options.max_part_bytes = *size;
  }
  return options;
}

std::string FormatCount(uint64_t parameters) {
  const auto n = static_cast<double>(parameters);
  return n >= 1e9 ? absl::StrFormat("%.2fB", n * 1e-9) : absl::StrFormat("%.2fM", n * 1e-6);
}

std::string AliasOf(const ModelShape& shape) {
  for (const PresetAlias& alias : PresetAliases()) {
    if (alias.name == shape.name) return std::string(alias.alias);
  }
  return "";
}

int List() {
  TextTable table({"name", "architecture", "parameters", "size", "bits per weight", "also called"});
  for (const auto& presets : {PublishedPresets(), TinyPresets()}) {
    for (const ModelShape& shape : presets) {
      const absl::StatusOr<ModelPlan> plan = PlanModel(shape, {});
      if (!plan.ok()) return Complain(plan.status());
      table.Add({shape.name, shape.architecture, FormatCount(plan->parameters),
                 FormatBytes(plan->bytes), absl::StrFormat("%.2f", plan->BitsPerWeight()),
                 AliasOf(shape)});
    }
  }
  std::fputs(table.Format("").c_str(), stdout);
  return 0;
}

absl::Status MakeWithProgress(const ModelShape& shape, const MakeModelOptions& options,
                              const std::string& path) {
  Progress progress("making " + path);
  const InterruptFlag interrupt;
  return MakeModel(shape, options, path, [&](double fraction) {
    return progress.Update(fraction) && !interrupt.raised();
  });
}

int Make(const MakeModelArguments& a) {
  if (a.list) return List();
  if (a.like.empty() || (a.out.empty() && !a.dry_run)) {
    return ComplainOfArguments(absl::InvalidArgumentError(
        "make-model needs --like NAME and the file to write; --list shows the names"));
  }
  const absl::StatusOr<ModelShape> shape = WantedShape(a);
  if (!shape.ok()) return ComplainOfArguments(shape.status());
  const absl::StatusOr<MakeModelOptions> options = WantedOptions(a);
  if (!options.ok()) return ComplainOfArguments(options.status());
  const absl::StatusOr<ModelPlan> plan = PlanModel(*shape, *options);
  if (!plan.ok()) return ComplainOfArguments(plan.status());
  const auto start = std::chrono::steady_clock::now();
  if (!a.dry_run) {
    const absl::Status status = MakeWithProgress(*shape, *options, a.out);
    if (!status.ok()) return Complain(status);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%s: %s, %s parameters, %s, %.2f bits per weight",
              a.dry_run ? "would be made" : a.out.c_str(), shape->name,
              FormatCount(plan->parameters).c_str(), FormatBytes(plan->bytes).c_str(),
              plan->BitsPerWeight());
  if (!a.dry_run) std::printf(", %.1f s", seconds.count());
  std::printf("\n");
  return 0;
}

}  // namespace

void AddMakeModelCommand(Command app, Run* run) {
  auto [command, a] = NewCommand<MakeModelArguments>(
      app, run, Make, "make-model",
      "Make a model of random weights in the shape of a real one, for benchmarks and tests");
  command.AddOption("out", a->out, "The GGUF file to write").Check(NotEmpty);
  command.AddOption("--like", a->like, "The model whose shape it gets; --list names them")
      .Check(NotEmpty);
  command.AddFlag("--list", a->list, "List the models there are shapes of");
  command
      .AddOption("--type", a->type,
                 "What it is quantised to, by the rules of `trine quantize`: Q4_K_M, Q8_0, F16, "
                 "... (default: Q4_0 for every matrix; F32 for tiny ones)")
      .Check(NotEmpty);
  command.AddFlag("--pure", a->pure, "That type for every matrix, no mix").Needs("--type");
  command.AddOption("--layers", a->layers, "Layers, instead of the model's")
      .Range(int64_t{1}, kMaxLayers);
  command.AddOption("--vocab", a->vocab, "Size of the vocabulary, instead of the model's")
      .Range(int64_t{1}, kMaxVocabulary);
  command.AddOption("--ctx", a->ctx, "Context that the file states, instead of the model's")
      .Range(int64_t{1}, kMaxContext);
  command
      .AddOption("--expert-skew", a->expert_skew,
                 "How many percent of the hits a tenth of each layer's experts gets, such as 60 "
                 "(default: tokens choose evenly)")
      .Range(int64_t{1}, int64_t{99});
  command.AddOption("-s,--seed", a->seed, "Same seed, same bytes, on every machine")
      .Range(int64_t{0}, std::numeric_limits<int64_t>::max())
      .ShowDefault();
  command.AddOption("-t,--threads", a->threads, "Threads (default: all processors)")
      .Range(1u, kMaxModelThreads);
  command
      .AddOption("--split-max-size", a->split_max_size,
                 "Write several files with at most this much data each: 500M, 2G")
      .Check(NotEmpty);
  command.AddFlag("--dry-run", a->dry_run, "Say how large it would be, and write nothing");
}

}  // namespace trine
