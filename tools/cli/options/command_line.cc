#include "tools/cli/options/command_line.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <type_traits>
#include <utility>

#include "CLI/CLI.hpp"
#include "runtime/tokenizer/utf8.h"
#include "tools/cli/options/arguments.h"
#include "tools/cli/options/describe_commands.h"
#include "tools/cli/options/values.h"

namespace trine {
namespace {

constexpr int kUsage = 2;

// The name of the check that the value is of the option's type.
constexpr char kTypeCheck[] = "type";

// The type of a number that an option sets; void: it sets something else.
template <typename T>
struct NumberOf {
  using Type = std::conditional_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, T, void>;
};
template <typename T>
struct NumberOf<std::optional<T>> : NumberOf<T> {};

// The parser's own checks say what is wrong in words of programmers, so these replace them. They
// keep the text that describes what is allowed, which --help shows.
CLI::Validator WithSentence(const CLI::Validator& check,
                            std::function<std::string(const std::string&)> sentence) {
  return CLI::Validator([sentence](std::string& text) { return sentence(text); },
                        check.get_description());
}

}  // namespace

Option Option::Check(std::function<std::string(const std::string&)> check) {
  option_->check(std::move(check));
  return *this;
}

template <typename T>
Option Option::Range(T low, T high) {
  option_->get_validator(kTypeCheck)->active(false);
  option_->check(WithSentence(CLI::Range(low, high), [low, high](const std::string& text) {
    return WrongNumber(text, low, high);
  }));
  return *this;
}
template Option Option::Range(int, int);
template Option Option::Range(int64_t, int64_t);
template Option Option::Range(uint32_t, uint32_t);
template Option Option::Range(float, float);
template Option Option::Range(double, double);

Option Option::OneOf(std::vector<std::string> choices) {
  option_->check(WithSentence(CLI::IsMember(choices), [choices](const std::string& text) {
    return WrongWord(text, choices);
  }));
  return *this;
}

Option Option::ExistingFolder() {
  option_->check(WithSentence(CLI::ExistingDirectory, [](const std::string& text) {
    return CLI::ExistingDirectory(text).empty() ? "" : IsNo(text, "folder that is there");
  }));
  return *this;
}

Option Option::AsSize() {
  option_->transform(CLI::Validator([](std::string& text) { return WrongSize(&text); },
                                    CLI::AsSizeValue(false).get_description()));
  return ValueName("SIZE");
}

Option Option::Required() {
  option_->required();
  return *this;
}

Option Option::Needs(const std::string& name) {
  option_->needs(name);
  return *this;
}

Option Option::Excludes(std::initializer_list<const char*> names) {
  for (const char* name : names) option_->excludes(std::string(name));
  return *this;
}

Option Option::Delimiter(char delimiter) {
  option_->delimiter(delimiter);
  return *this;
}

Option Option::OneValueEach() {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::Repeatable() {
  option_->expected(1)->take_all();
  return *this;
}

Option Option::ShowDefault() {
  option_->capture_default_str();
  return *this;
}

Option Option::DefaultText(const std::string& text) {
  option_->default_str(text);
  return *this;
}

Option Option::ValueName(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option Option::OptionText(const std::string& text) {
  option_->option_text(text);
  return *this;
}

Command Command::AddCommand(const std::string& name, const std::string& description) {
  return Command(app_->add_subcommand(name, description));
}

template <typename T>
Option Command::AddOption(const std::string& names, T& value, const std::string& help) {
  CLI::Option* option = app_->add_option(names, value, help);
  using Number = typename NumberOf<T>::Type;
  if constexpr (!std::is_void_v<Number>) {
    option->check(CLI::Validator([](std::string& text) { return WrongNumber<Number>(text); }, "",
                                 kTypeCheck));
  }
  return Option(option);
}
template Option Command::AddOption(const std::string&, int&, const std::string&);
template Option Command::AddOption(const std::string&, int64_t&, const std::string&);
template Option Command::AddOption(const std::string&, uint32_t&, const std::string&);
template Option Command::AddOption(const std::string&, uint64_t&, const std::string&);
template Option Command::AddOption(const std::string&, float&, const std::string&);
template Option Command::AddOption(const std::string&, double&, const std::string&);
template Option Command::AddOption(const std::string&, std::string&, const std::string&);
template Option Command::AddOption(const std::string&, std::vector<std::string>&,
                                   const std::string&);
template Option Command::AddOption(const std::string&, std::optional<std::string>&,
                                   const std::string&);
template Option Command::AddOption(const std::string&, std::optional<int64_t>&, const std::string&);

Option Command::AddParsed(const std::string& names,
                          std::function<std::string(const std::string&)> parse,
                          const std::string& help) {
  // CLI11 calls a check once for each value, and refuses the value if the check returns a text.
  CLI::Option* option = app_->add_option_function<std::string>(
      names, [](const std::string&) {}, help);
  option->check(std::move(parse));
  return Option(option);
}

template <typename T>
Option Command::AddFlag(const std::string& names, T& value, const std::string& help) {
  return Option(app_->add_flag(names, value, help));
}
template Option Command::AddFlag(const std::string&, bool&, const std::string&);
template Option Command::AddFlag(const std::string&, std::string&, const std::string&);

Option Command::AddParsedList(const std::string& names,
                              std::function<std::string(const std::string&)> parse,
                              const std::string& help) {
  CLI::Option* option = app_->add_option_function<std::vector<std::string>>(
      names, [](const std::vector<std::string>&) {}, help);
  option->check(std::move(parse));
  return Option(option);
}

Option Command::AddFlagOff(const std::string& names, bool& value, const std::string& help) {
  return Option(app_->add_flag_callback(
      names, [&value] { value = false; }, help));
}

void Command::AddFlagTo(const std::string& names, int64_t& value, int64_t set,
                        const std::string& help) {
  app_->add_flag_callback(
      names, [&value, set] { value = set; }, help);
}

void Command::OnParsed(std::function<void()> callback) { app_->callback(std::move(callback)); }

void Command::RequireCommands(int count) { app_->require_subcommand(count); }

void Command::Footer(const std::string& text) { app_->footer(text); }

CommandLine::CommandLine(const std::string& name, const std::string& description,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(0, 1);
}

CommandLine::~CommandLine() = default;

std::optional<int> CommandLine::Parse(int argc, char** argv) {
  NameValues(app_.get());
  try {
    auto arguments = WriteOutArguments(argc, argv);
    if (!arguments.ok()) throw CLI::ParseError(std::string(arguments.status().message()), kUsage);
    std::reverse(arguments->begin(), arguments->end());  // as CLI11 wants them
    app_->parse(*std::move(arguments));
  } catch (const CLI::Success& done) {  // --help, --version
    return app_->exit(done);
  } catch (const CLI::ParseError& wrong) {
    std::fprintf(stderr, "trine: %s (see --help)\n",
                 Printable(DescribeParseError(*app_, wrong)).c_str());
    return kUsage;
  }
  return std::nullopt;
}

std::string CommandLine::Help() const { return app_->help(); }

}  // namespace trine
