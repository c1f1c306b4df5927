// trine show model: shows what a model file holds and what running it would take.
#include <cstdio>
#include <string>

#include "runtime/gguf/gguf_file.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/options/read_input.h"
#include "tools/cli/output/show_report.h"

namespace trine {
namespace {

struct ShowArguments {
  std::string model;  // "": the model that comes with the program
  bool tensors = false;
  bool json = false;
};

int ShowModel(const ShowArguments& arguments) {
  const auto file =
      gguf::File::Open(arguments.model.empty() ? DefaultModelPath() : arguments.model);
  if (!file.ok()) return Complain(file.status());
  const std::string text =
      arguments.json ? FormatModelJson(**file) : FormatModel(**file, arguments.tensors);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

void AddShowCommand(Command app, Run* run) {
  Command show = app.AddCommand("show", "Show what something holds");
  show.RequireCommands(1);
  auto [model, a] = NewCommand<ShowArguments>(
      show, run, ShowModel, "model",
      "Show a model file's metadata, tensors and sizes, and the memory running it would take");
  model
      .AddOption("-m,--model", a->model,
                 "A GGUF file, or any part of a split one (default: the model that comes with the "
                 "program)")
      .Check(NotEmpty);
  model.AddOption("FILE", a->model, "The same, without -m")
      .Excludes({"--model"})
      .Check(NotEmpty)
      .ValueName("GGUF");
  model.AddFlag("--tensors", a->tensors, "List every tensor, not a summary");
  model.AddFlag("--json", a->json, "Print everything as JSON");
}

}  // namespace trine
