#include "plugins/plugin_option.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace trine {

absl::StatusOr<PluginOption> ParsePluginOption(const std::string& text) {
  const auto wrong = [&](const char* why) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no option for a plugin, [PLUGIN:]NAME=VALUE: ", why));
  };
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return wrong("there is no '='");
  if (text.find(';') != std::string::npos) return wrong("a ';' separates options");
  PluginOption option{"", text};
  if (const size_t colon = text.find(':'); colon < equals) {
    option.plugin = text.substr(0, colon);
    option.setting = text.substr(colon + 1);
    if (option.plugin.empty()) return wrong("there is no plugin before the ':'");
  }
  if (option.setting.front() == '=') return wrong("there is no name before the '='");
  return option;
}

absl::StatusOr<std::vector<PluginOption>> ParsePluginOptions(const std::string& text) {
  std::vector<PluginOption> options;
  for (absl::string_view part : absl::StrSplit(text, ';', absl::SkipEmpty())) {
    auto option = ParsePluginOption(std::string(part));
    if (!option.ok()) return option.status();
    options.push_back(*std::move(option));
  }
  return options;
}

bool IsFor(const PluginOption& option, const Candidate& plugin) {
  return option.plugin.empty() ? plugin.named : option.plugin == NameOfFile(plugin.path);
}

std::string OptionsFor(const std::vector<PluginOption>& options, const Candidate& plugin) {
  std::string text;
  for (const PluginOption& option : options) {
    if (IsFor(option, plugin)) absl::StrAppend(&text, text.empty() ? "" : ";", option.setting);
  }
  return text;
}

std::string NameOfFile(const std::string& path) {
  absl::string_view file = path;
  file.remove_prefix(file.rfind('/') + 1);
  absl::string_view name = file;
  const bool usual =
      absl::ConsumePrefix(&name, "libtrine-backend-") && absl::ConsumeSuffix(&name, ".so");
  return std::string(usual ? name : file);
}

}  // namespace trine
