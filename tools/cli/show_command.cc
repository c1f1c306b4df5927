// trine show model: what a model file holds and what running it would take.
#include <cstdio>
#include <memory>
#include <string>

#include "runtime/gguf/gguf_file.h"
#include "tools/cli/commands.h"
#include "tools/cli/default_model.h"
#include "tools/cli/engine_arguments.h"
#include "tools/cli/show_report.h"

namespace trine {
namespace {

struct ShowArguments {
  std::string model;  // "": the one that comes with the program
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

void AddShowCommand(CLI::App* app, Run* run) {
  CLI::App* show = app->add_subcommand("show", "Show what something holds");
  show->require_subcommand(1);
  auto arguments = std::make_shared<ShowArguments>();
  CLI::App* model = show->add_subcommand(
      "model",
      "Show a model file's metadata, tensors and sizes, and the memory running it would take");
  CLI::Option* option =
      model
          ->add_option("-m,--model", arguments->model,
                       "A GGUF file, or any part of a split one (default: the model that comes "
                       "with the program)")
          ->check(NotEmpty);
  model->add_option("FILE", arguments->model, "The same, without -m")
      ->excludes(option)
      ->check(NotEmpty)
      ->type_name("GGUF");
  model->add_flag("--tensors", arguments->tensors, "List every tensor, not a summary");
  model->add_flag("--json", arguments->json, "Print everything as JSON");
  model->callback([arguments, run] { *run = [arguments] { return ShowModel(*arguments); }; });
}

}  // namespace trine
