// trine show model: shows what a model file holds and what running it would take.
#include <cstdio>
#include <memory>
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
  if (!file.ok()) {
    return Complain(file.status());
  }
  const std::string text =
      arguments.json ? FormatModelJson(**file) : FormatModel(**file, arguments.tensors);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

void AddShowCommand(Command app, Run* run) {
  Command show = app.AddCommand("show", "Show what something holds");
  show.RequireCommands(1);
  auto arguments = std::make_shared<ShowArguments>();
  Command model = show.AddCommand(
      "model",
      "Show a model file's metadata, tensors and sizes, and the memory running it would take");
  Option option =
      model
          .AddOption("-m,--model", arguments->model,
                     "A GGUF file, or any part of a split one (default: the model that comes "
                     "with the program)")
          .Check(NotEmpty);
  model.AddOption("FILE", arguments->model, "The same, without -m")
      .Excludes(option)
      .Check(NotEmpty)
      .ValueName("GGUF");
  model.AddFlag("--tensors", arguments->tensors, "List every tensor, not a summary");
  model.AddFlag("--json", arguments->json, "Print everything as JSON");
  model.OnParsed([arguments, run] { *run = [arguments] { return ShowModel(*arguments); }; });
}

}  // namespace trine
