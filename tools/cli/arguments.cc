#include "tools/cli/arguments.h"

namespace trine {
namespace {

struct LongForm {
  const char* typed;
  const char* long_form;
};

constexpr LongForm kLongForms[] = {
    {"-ub", "--ubatch-size"},  {"-ctk", "--cache-type-k"},  {"-ctv", "--cache-type-v"},
    {"-ts", "--tensor-split"}, {"-ngl", "--gpu-layers"},    {"-dev", "--device"},
    {"-np", "--parallel"},     {"-sys", "--system-prompt"},
};

std::string WriteOut(const std::string& argument) {
  for (const LongForm& form : kLongForms) {
    const std::string typed = form.typed;
    if (argument == typed) return form.long_form;
    if (argument.rfind(typed + "=", 0) == 0) return form.long_form + argument.substr(typed.size());
  }
  return argument;
}

}  // namespace

std::vector<std::string> WriteOutArguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  bool verbatim = false;
  for (int i = 1; i < argc; ++i) {
    verbatim = verbatim || std::string(argv[i]) == "--";
    arguments.push_back(verbatim ? std::string(argv[i]) : WriteOut(argv[i]));
  }
  return arguments;
}

}  // namespace trine
