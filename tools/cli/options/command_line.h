// Parses the command line. This header hides CLI11, which does the work: CLI11 is all templates,
// and a source file that includes it takes ten seconds to compile.
//
// Command and Option are handles: copy them freely, and keep the CommandLine alive while they are
// used. Methods of Option return the option itself, so that calls can be chained.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace trine {

// An option of a command. The methods change what it takes and how --help shows it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  // Refuses a value for which `check` returns a reason.
  Option Check(std::function<std::string(const std::string&)> check);
  // Refuses a number outside of [low, high]. T: int, int64_t, uint32_t, float or double.
  template <typename T>
  Option Range(T low, T high);
  Option OneOf(std::vector<std::string> choices);
  Option ExistingFolder();
  // Reads a number of bytes, such as 512M. Refuses one below 0.
  Option AsSize();

  Option Required();
  // Name other options, which must have been added.
  Option Needs(const std::string& name);
  Option Excludes(std::initializer_list<const char*> names);

  // Splits one argument into several values at this character.
  Option Delimiter(char delimiter);
  // Takes one value each time the option is given, so the next argument is not taken as a value
  // too.
  Option OneValueEach();
  // Takes one value, and may be given several times.
  Option Repeatable();

  // Shows the variable's present value, or this text, as the default.
  Option ShowDefault();
  Option DefaultText(const std::string& text);
  // ValueName sets the name of the value in --help. OptionText replaces all text after the option's
  // names there.
  Option ValueName(const std::string& name);
  Option OptionText(const std::string& text);

 private:
  CLI::Option* option_;
};

// A command. The root of a CommandLine is one, too.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command AddCommand(const std::string& name, const std::string& description);

  // Adds an option that sets `value`. `names` is "-m,--model", or "FILE" for an argument by
  // position. `value` must live until the command line has been parsed. T: bool (flags only), int,
  // int64_t, uint32_t, uint64_t, float, double, std::string, an optional string or int64_t, or a
  // vector of strings.
  template <typename T>
  Option AddOption(const std::string& names, T& value, const std::string& help);
  // Adds an option for which `parse` is called with each value once, in the order in which options
  // were added. If `parse` returns a reason, the value is refused with it.
  Option AddParsed(const std::string& names, std::function<std::string(const std::string&)> parse,
                   const std::string& help);
  // Adds an option as AddParsed does, but one that takes several values and may be given again.
  Option AddParsedList(const std::string& names,
                       std::function<std::string(const std::string&)> parse,
                       const std::string& help);
  // Adds an option whose value is one of a few words, each with a value of `value`'s type.
  template <typename T>
  Option AddChoice(const std::string& names, T& value,
                   std::vector<std::pair<std::string, T>> choices, const std::string& help) {
    std::vector<std::string> words;
    std::string present;
    for (const auto& [word, meaning] : choices) {
      words.push_back(word);
      if (meaning == value) present = word;
    }
    const auto set = [&value, choices = std::move(choices)](const std::string& text) {
      for (const auto& [word, meaning] : choices) {
        if (word == text) value = meaning;
      }
      return std::string();
    };
    return AddParsed(names, set, help).OneOf(std::move(words)).DefaultText(present);
  }
  template <typename T>
  Option AddFlag(const std::string& names, T& value, const std::string& help);

  // Adds a flag that sets `value` to false.
  Option AddFlagOff(const std::string& names, bool& value, const std::string& help);
  // Adds a flag that sets the value to `set`.
  void AddFlagTo(const std::string& names, int64_t& value, int64_t set, const std::string& help);

  // Calls `callback` if the user gave this command.
  void OnParsed(std::function<void()> callback);
  void RequireCommands(int count);
  void Footer(const std::string& text);

  const CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

// The parser and all of its commands.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description, const std::string& version);
  ~CommandLine();

  Command root() { return Command(app_.get()); }

  // Parses the arguments. Returns an exit code if the program has nothing more to do, because it
  // has printed --help, --version, or the error in the arguments.
  std::optional<int> Parse(int argc, char** argv);

  std::string Help() const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace trine
