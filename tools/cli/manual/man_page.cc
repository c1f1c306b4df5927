#include "tools/cli/manual/man_page.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace trine {
namespace {

struct Entry {
  const char* name;
  const char* text;
};

constexpr Entry kExitStatus[] = {
    {"0", "Done."},
    {"1", "It could not be done, or the answer is no; one line on standard error says why."},
    {"2", "The command line can't be read."},
    {"130", "Interrupted; what there was of the answer has been written."},
};

constexpr Entry kEnvironment[] = {
    {"TRINE_PLUGIN_PATH",
     "Absolute files or folders, separated by colons, in which plugins are looked for before those "
     "that came with the program."},
    {"TRINE_BACKEND_ORDER",
     "Names of plugins, separated by commas, the most wanted first, for devices that several see."},
    {"TRINE_PROBE", "The program that tries a plugin in a process of its own: its absolute path."},
    {"TRINE_PROBE_TIMEOUT_MS",
     "Milliseconds in which a plugin must give a sign of life. Default: 30000."},
    {"TRINE_CPU_ISA",
     "The level of the CPU kernels, instead of the best this processor has: baseline, avx2, "
     "avxvnni, avx512, amx, dotprod, i8mm or reference. The results are the same."},
    {"TRINE_PIN",
     "0: threads are not bound to processors; 1: they are, where they take every core. By default "
     "they are on machines with several NUMA nodes."},
    {"TRINE_TEAM",
     "Whose threads compute on the CPU, where --team does not say: own or openmp. OpenMP's own "
     "variables, such as OMP_NUM_THREADS, then count, and TRINE_PIN does not."},
    {"TRINE_CALIBRATION",
     "The file that keeps what devices were measured to take, or off. Default: "
     "trine/calibration.json in the user's cache folder."},
    {"TRINE_API_KEY", "A key that those who ask trine serve must have, beside those of --api-key."},
    {"TRINE_DISPATCH",
     "log: what decides whether work leaves the device that its weights are on is said, and each "
     "change of the way that passes take."},
    {"TRINE_FAULT",
     "Devices that are to fail, and when, such as dgpu:lost@token=17; for tests, and to see what "
     "happens."},
    {"TRINE_SELF_TEST_CACHE",
     "The folder in which it is kept which devices of other authors' plugins are known to be "
     "exact, "
     "or off. Default: trine/self-test in the user's cache folder."},
    {"TRINE_CPU_LANE_THREADS", "Threads that sample several sequences at once: 1 to 256."},
    {"TRINE_VULKAN_ALLOW_CPU",
     "1: Vulkan devices that run on the CPU count as devices, where a split names them."},
    {"TRINE_VULKAN_CACHE",
     "The folder in which compiled Vulkan pipelines are kept, or off. Default: trine in the user's "
     "cache folder."},
    {"TRINE_VULKAN_TUNING",
     "How the Vulkan backend uses devices: name=value, separated by semicolons. The results are "
     "the same."},
    {"TRINE_VULKAN_VALIDATE",
     "1: Vulkan's validation layers watch, and say on standard error what they see."},
    {"TRINE_VULKAN_MESSAGES", "A file to which they say it instead."},
    {"TRINE_HIP_ALLOW_INTEGRATED", "1: the HIP backend takes integrated GPUs, too."},
    {"TRINE_HIP_ALLOW_HOST",
     "1: the HIP backend's emulator, which runs on the CPU, counts as a device; for tests."},
    {"TRINE_HIP_TUNING",
     "How the HIP backend uses devices: name=value, separated by semicolons. The results are the "
     "same."},
};

// PREFIX stands for the folder above the program's folder, because an installation may be moved.
constexpr Entry kFiles[] = {
    {"PREFIX/share/trine/models/tales-27m-q8_0.gguf", "The model used where none is named."},
    {"PREFIX/" TRINE_LIBDIR "/trine/plugins/", "The backends that came with the program."},
    {"PREFIX/" TRINE_LIBEXECDIR "/trine/trine-probe", "Tries a plugin in a process of its own."},
    {"PREFIX/share/doc/trine/", "Pages on every part, and examples."},
};

std::string Section(const char* title) { return absl::StrCat(".SH ", title, "\n"); }

std::string Item(const std::string& head, const std::string& body) {
  return absl::StrCat(".TP\n", head, "\n", body, "\n");
}

template <size_t n>
std::string List(const char* title, const Entry (&entries)[n]) {
  std::string text = Section(title);
  for (const Entry& entry : entries) {
    absl::StrAppend(&text, Item(RoffBold(entry.name), Roff(entry.text)));
  }
  return text;
}

std::string Sentence(const std::string& text) {
  if (text.empty() || absl::EndsWith(text, ".")) return text;
  return text + ".";
}

std::string Head(const OptionInfo& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    names.push_back(absl::StartsWith(name, "-") ? RoffBold(name) : RoffItalic(name));
  }
  std::string head = absl::StrJoin(names, ", ");
  const bool argument = !absl::StartsWith(option.names[0], "-");
  if (option.value != ValueKind::kNone && !argument) {
    absl::StrAppend(&head, " ", RoffItalic(option.value_name));
  }
  return head;
}

std::string Body(const OptionInfo& option) {
  std::vector<std::string> sentences = {Sentence(option.description)};
  if (!option.choices.empty()) {
    sentences.push_back(absl::StrCat("One of ", absl::StrJoin(option.choices, ", "), "."));
  }
  if (!option.range.empty()) sentences.push_back(absl::StrCat("From ", option.range, "."));
  if (!option.default_value.empty()) {
    sentences.push_back(absl::StrCat("Default: ", option.default_value, "."));
  }
  if (option.required) sentences.push_back("Required.");
  if (!option.needs.empty()) {
    sentences.push_back(absl::StrCat("Only with ", absl::StrJoin(option.needs, ", "), "."));
  }
  if (!option.excludes.empty()) {
    sentences.push_back(absl::StrCat("Not with ", absl::StrJoin(option.excludes, ", "), "."));
  }
  return Roff(absl::StrJoin(sentences, " "));
}

// Writes options, or arguments, if there are any.
std::string Options(const char* title, const std::vector<OptionInfo>& options) {
  std::string text = options.empty() ? "" : Section(title);
  for (const OptionInfo& option : options) {
    absl::StrAppend(&text, Item(Head(option), Body(option)));
  }
  return text;
}

std::string Synopsis(const CommandInfo& command) {
  std::string text =
      absl::StrCat(RoffBold(absl::StrJoin(command.path, " ")), " [", RoffItalic("OPTIONS"), "]");
  for (const OptionInfo& argument : command.arguments) {
    std::string name = RoffItalic(argument.names[0]);
    if (argument.repeated) absl::StrAppend(&name, " ...");
    absl::StrAppend(&text, " ", argument.required ? name : absl::StrCat("[", name, "]"));
  }
  if (!command.commands.empty()) absl::StrAppend(&text, " ", RoffItalic("COMMAND"), " ...");
  return text + "\n";
}

std::string PageReference(const std::string& name) {
  // Dashes of a name must not become hyphens, nor may lines break after them.
  return absl::StrCat("\\fB", absl::StrReplaceAll(name, {{"-", "\\-"}}), "\\fR(1)");
}

std::string CommandList(const CommandInfo& command) {
  if (command.commands.empty()) return "";
  std::string text = Section("COMMANDS");
  for (const CommandInfo& below : command.commands) {
    absl::StrAppend(&text, Item(RoffBold(absl::StrJoin(below.path, " ")),
                                absl::StrCat(Roff(Sentence(Summary(below.description))), " See ",
                                             PageReference(ManPageName(below)), ".")));
  }
  return text;
}

std::string SeeAlso(const CommandInfo& command) {
  std::vector<std::string> pages;
  std::string above;
  for (size_t i = 0; i + 1 < command.path.size(); ++i) {
    absl::StrAppend(&above, i == 0 ? "" : "-", command.path[i]);
    pages.push_back(PageReference(above));
  }
  for (const CommandInfo& below : command.commands) {
    pages.push_back(PageReference(ManPageName(below)));
  }
  if (pages.empty()) return "";
  return absl::StrCat(Section("SEE ALSO"), absl::StrJoin(pages, ",\n"), "\n");
}

}  // namespace

std::string ManPageName(const CommandInfo& command) { return absl::StrJoin(command.path, "-"); }

std::string ManPage(const CommandInfo& command, const std::string& version) {
  const std::string name = absl::StrReplaceAll(ManPageName(command), {{"-", "\\-"}});
  std::string text = absl::StrCat(".TH ", absl::AsciiStrToUpper(name), " 1 \"\" \"trine ", version,
                                  "\" \"Trine Manual\"\n");
  // Turn off hyphenation and justification.
  absl::StrAppend(&text, ".nh\n.ad l\n");
  absl::StrAppend(&text, Section("NAME"), name, " \\- ", Roff(Summary(command.description)), "\n");
  absl::StrAppend(&text, Section("SYNOPSIS"), Synopsis(command));
  absl::StrAppend(&text, Section("DESCRIPTION"), Roff(Sentence(command.description)), "\n");
  absl::StrAppend(&text, CommandList(command), Options("ARGUMENTS", command.arguments),
                  Options("OPTIONS", command.options), List("EXIT STATUS", kExitStatus),
                  List("ENVIRONMENT", kEnvironment), List("FILES", kFiles), SeeAlso(command));
  return text;
}

std::string Roff(absl::string_view text) {
  std::string roff;
  bool in_option = false;  // in a word that begins with a dash
  bool in_word = false;
  for (const char c : text) {
    if (c == '-') in_option = in_option || !in_word;
    in_word = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-';
    if (!in_word) in_option = false;
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += in_option ? "\\-" : "-";
    } else if ((c == '.' || c == '\'') && (roff.empty() || roff.back() == '\n')) {
      absl::StrAppend(&roff, "\\&", absl::string_view(&c, 1));
    } else {
      roff += c;
    }
  }
  return roff;
}

std::string RoffBold(absl::string_view text) { return absl::StrCat("\\fB", Roff(text), "\\fR"); }

std::string RoffItalic(absl::string_view text) { return absl::StrCat("\\fI", Roff(text), "\\fR"); }

}  // namespace trine
