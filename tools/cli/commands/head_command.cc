// trine head: trains, tests and uses heads, which say which of several branches is better.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/engine/branch_choice_head.h"
#include "runtime/head/head_data.h"
#include "runtime/head/head_file.h"
#include "runtime/head/train_head.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/options/read_input.h"
#include "tools/cli/output/head_output.h"
#include "tools/cli/terminal/progress.h"

namespace trine {
namespace {

struct HeadArguments {
  EngineArguments engine;
  std::string head;  // "": in the folder of the model
  std::string data;
  bool json = false;
  // train
  TrainOptions train;
  bool chat = false;
  // choose
  PromptSource prompt;
  std::vector<std::string> branches;
};

// Examples with their rows, and the time to read one.
struct ReadExamples {
  HeadData data;
  double example_ms = 0;
};

std::string HeadPath(const HeadArguments& a) {
  return a.head.empty() ? HeadPathFor(EngineOptionsOf(a.engine).model_path) : a.head;
}

absl::StatusOr<HeadData> LoadData(const std::string& path) {
  const auto text = ReadWholeFile(path);
  if (!text.ok()) return text.status();
  auto data = ParseHeadData(*text);
  if (!data.ok()) return About(path, data.status());
  return data;
}

absl::StatusOr<ReadExamples> ReadAll(const HeadArguments& a, Engine* engine, PromptForm form,
                                     HeadData data) {
  ReadExamples result;
  result.data = std::move(data);
  Progress progress("reading");
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status s = ReadRows(engine, form, &result.data, [&](int64_t done, int64_t total) {
    return progress.Update(done, total);
  });
  if (absl::IsOutOfRange(s)) {
    return About(a.data, absl::OutOfRangeError(absl::StrCat(s.message(), ": -c takes more")));
  }
  if (!s.ok()) return About(a.data, s);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  result.example_ms = took.count() / static_cast<double>(result.data.examples.size());
  return result;
}

// One text per pass: the cache of one sequence is enough, and the cost of reading one text shows.
absl::StatusOr<std::unique_ptr<Engine>> LoadForHead(HeadArguments* a) {
  a->engine.hidden_rows = true;
  return LoadEngine(a->engine);
}

int Train(HeadArguments a) {
  a.train.form = a.chat ? PromptForm::kChat : PromptForm::kPlain;
  auto data = LoadData(a.data);
  if (!data.ok()) return Complain(data.status());
  if (data->kind == HeadKind::kLabel) {  // fails before everything is read
    if (const auto labels = TwoLabels(*data); !labels.ok()) {
      return Complain(About(a.data, labels.status()));
    }
  }
  const auto engine = LoadForHead(&a);
  if (!engine.ok()) return Complain(engine.status());
  const auto read = ReadAll(a, engine->get(), a.train.form, *std::move(data));
  if (!read.ok()) return Complain(read.status());
  a.train.fast = !(*engine)->limits().exact();
  const auto trained = TrainHead(read->data, IdentityOf(**engine), a.train);
  if (!trained.ok()) return Complain(About(a.data, trained.status()));
  const auto cost = MeasureHeadCost(engine->get(), trained->head, read->data.examples[0].texts[0]);
  if (!cost.ok()) return Complain(cost.status());
  const std::string path = HeadPath(a);
  if (absl::Status s = WriteHead(path, trained->head); !s.ok()) return Complain(s);
  if (a.json) {
    nlohmann::ordered_json json = {{"head", Printable(path)},
                                   {"kind", HeadKindName(trained->head.kind)},
                                   {"form", PromptFormName(trained->head.form)},
                                   {"iterations", trained->head.training.iterations},
                                   {"trained", HeadReportJson(trained->trained)}};
    if (trained->held_out) json["held_out"] = HeadReportJson(*trained->held_out);
    json["cost"] = HeadCostJson(read->example_ms, *cost);
    std::printf("%s\n", json.dump(2).c_str());
  } else {
    std::fputs(FormatHeadReport("trained with", trained->trained).c_str(), stdout);
    if (trained->held_out) {
      std::fputs(FormatHeadReport("held out", *trained->held_out).c_str(), stdout);
    }
    std::fputs(FormatHeadCost(read->example_ms, *cost).c_str(), stdout);
    std::printf("kept in %s\n", Printable(path).c_str());
  }
  return Complain((*engine)->WriteTrace());
}

int Test(HeadArguments a) {
  const auto head = ReadHead(HeadPath(a));
  if (!head.ok()) return Complain(head.status());
  auto data = LoadData(a.data);
  if (!data.ok()) return Complain(data.status());
  if (absl::Status s = CheckData(*head, *data); !s.ok()) return Complain(About(a.data, s));
  const auto engine = LoadForHead(&a);
  if (!engine.ok()) return Complain(engine.status());
  if (absl::Status s = CheckFits(*head, IdentityOf(**engine)); !s.ok()) return Complain(s);
  const auto read = ReadAll(a, engine->get(), head->form, *std::move(data));
  if (!read.ok()) return Complain(read.status());
  std::vector<size_t> all;
  for (size_t i = 0; i < read->data.examples.size(); ++i) all.push_back(i);
  const HeadReport report = EvaluateHead(*head, read->data, all);
  const auto cost = MeasureHeadCost(engine->get(), *head, read->data.examples[0].texts[0]);
  if (!cost.ok()) return Complain(cost.status());
  if (a.json) {
    nlohmann::ordered_json json = HeadReportJson(report);
    json["cost"] = HeadCostJson(read->example_ms, *cost);
    std::printf("%s\n", json.dump(2).c_str());
  } else {
    std::fputs(FormatHeadReport("tested", report).c_str(), stdout);
    std::fputs(FormatHeadCost(read->example_ms, *cost).c_str(), stdout);
  }
  return Complain((*engine)->WriteTrace());
}

absl::StatusOr<BranchChoiceHead::Choice> Choose(const HeadArguments& a, Engine* engine, Head head) {
  std::string prompt;
  if (a.prompt.given() || a.branches.empty()) {
    auto text = ReadPrompt(a.prompt);
    if (!text.ok()) return text.status();
    prompt = *std::move(text);
  }
  const auto chooser = BranchChoiceHead::Create(engine, std::move(head));
  if (!chooser.ok()) return chooser.status();
  if (a.branches.empty()) return chooser->ChooseLabel(prompt);
  std::vector<std::string> texts;
  for (const std::string& branch : a.branches) texts.push_back(prompt + branch);
  return chooser->ChooseBranch(texts);
}

int ChooseBranch(HeadArguments a) {
  const auto head = ReadHead(HeadPath(a));
  if (!head.ok()) return Complain(head.status());
  a.engine.embeddings = true;
  const auto engine = LoadEngine(a.engine);
  if (!engine.ok()) return Complain(engine.status());
  const auto choice = Choose(a, engine->get(), *head);
  if (!choice.ok()) return Complain(choice.status());
  if (a.json) {
    std::printf("%s\n", ChoiceJson(*head, *choice).dump(2).c_str());
  } else {
    std::fputs(FormatChoice(*head, *choice).c_str(), stdout);
  }
  return Complain((*engine)->WriteTrace());
}

void AddDataOption(Command command, HeadArguments* a) {
  command
      .AddOption("--data", a->data,
                 "Examples, a JSON object on each line: \"prompt\" and \"label\", or "
                 "\"branches\" and \"best\"; \"group\" for those that belong together; -: "
                 "standard input")
      .Required()
      .Check(NotEmpty)
      .ValueName("FILE");
}

void AddHeadOption(Command command, const std::string& names, const std::string& what,
                   HeadArguments* a) {
  command
      .AddOption(names, a->head,
                 what + " (default: beside the model, with .head.json in place of .gguf)")
      .Check(NotEmpty)
      .ValueName("FILE");
}

void AddRest(Command command, HeadArguments* a) {
  command.AddFlag("--json", a->json, "Print JSON");
  AddEngineOptions(command, "Most tokens of a text", &a->engine);
}

void AddTrain(Command head, Run* run) {
  auto [command, a] = NewCommand<HeadArguments>(
      head, run, Train, "train",
      "Train a head with examples: the model reads each, a regression learns from the "
      "last rows of its hidden state which answer is right");
  AddDataOption(command, a.get());
  AddHeadOption(command, "-o,--output", "Where the head is kept", a.get());
  command.AddFlag("--chat", a->chat, "Texts are messages: apply the model's chat template");
  command.AddOption("--l2", a->train.l2, "How much large weights cost; 1e-9 to 1e9")
      .Range(1e-9, 1e9)
      .ShowDefault();
  command
      .AddOption("--hold-out", a->train.hold_out,
                 "The share of examples that is not trained with but tested; 0: none")
      .Range(0.0, 0.99)
      .ShowDefault();
  command.AddOption("-s,--seed", a->train.seed, "Of which examples are held out").ShowDefault();
  command
      .AddOption("--good", a->train.good,
                 "The label of a good text, for heads that value texts (default: the last in "
                 "alphabetical order)")
      .Check(NotEmpty)
      .ValueName("LABEL");
  AddRest(command, a.get());
}

void AddTest(Command head, Run* run) {
  auto [command, a] = NewCommand<HeadArguments>(
      head, run, Test, "test",
      "Test a head: accuracy with its interval, baselines, confusion, swapped branches, "
      "cost");
  AddHeadOption(command, "--head", "The head", a.get());
  AddDataOption(command, a.get());
  AddRest(command, a.get());
}

void AddChoose(Command head, Run* run) {
  auto [command, a] = NewCommand<HeadArguments>(
      head, run, ChooseBranch, "choose",
      "Ask a head: which label a prompt has, or which branch is best, and how sure it is");
  AddHeadOption(command, "--head", "The head", a.get());
  AddPromptOptions(command, "The prompt; with --branch, what all branches begin with", &a->prompt);
  command.AddOption("--branch", a->branches, "One of the branches to choose from; may be repeated")
      .Check(NotEmpty)
      .Repeatable()
      .ValueName("TEXT");
  AddRest(command, a.get());
}

}  // namespace

void AddHeadCommand(Command app, Run* run) {
  Command head = app.AddCommand("head", "Train and use heads: which of several branches is better");
  head.RequireCommands(1);
  AddTrain(head, run);
  AddTest(head, run);
  AddChoose(head, run);
}

}  // namespace trine
