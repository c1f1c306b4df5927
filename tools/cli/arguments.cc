#include "tools/cli/arguments.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace trine {
namespace {

struct LongForm {
  const char* typed;
  const char* long_form;
};

constexpr LongForm kLongForms[] = {
    {"-ub", "--ubatch-size"},  {"-ctk", "--cache-type-k"},   {"-ctv", "--cache-type-v"},
    {"-ts", "--tensor-split"}, {"-ngl", "--gpu-layers"},     {"-dev", "--device"},
    {"-np", "--parallel"},     {"-sys", "--system-prompt"},  {"-fa", "--flash-attn"},
    {"-sm", "--split-mode"},   {"-ot", "--override-tensor"}, {"-jf", "--json-schema-file"},
    {"-pg", "--pg"},
};

std::string WriteOut(const std::string& argument) {
  for (const LongForm& form : kLongForms) {
    const std::string typed = form.typed;
    if (argument == typed) return form.long_form;
    if (argument.rfind(typed + "=", 0) == 0) return form.long_form + argument.substr(typed.size());
  }
  return argument;
}

// The parser takes it for the option without a value: a variable that is empty would go unnoticed.
constexpr char kNoFolder[] = "--pack-cache=";

// -xyz, with or without =value.
bool HasSeveralLetters(const std::string& argument) {
  if (argument.size() < 3 || argument[0] != '-') return false;
  return absl::ascii_isalpha(argument[1]) && absl::ascii_isalpha(argument[2]);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> WriteOutArguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  bool verbatim = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    verbatim = verbatim || argument == "--";
    if (!verbatim && argument == kNoFolder) {
      return absl::InvalidArgumentError("--pack-cache= names no folder");
    }
    arguments.push_back(verbatim ? argument : WriteOut(argument));
    if (!verbatim && HasSeveralLetters(arguments.back())) {
      return absl::InvalidArgumentError(absl::StrCat("unknown option ", argument));
    }
  }
  return arguments;
}

std::vector<std::string> TypedForms(const std::string& long_form) {
  std::vector<std::string> typed;
  for (const LongForm& form : kLongForms) {
    if (long_form == form.long_form) typed.push_back(form.typed);
  }
  return typed;
}

}  // namespace trine
