// Options that users give to plugins: threads=4, or vulkan:heap=2G for the plugin of that name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plugins/search_path.h"

namespace trine {

struct PluginOption {
  std::string plugin;   // the NAME of libtrine-backend-NAME.so; "": the files that the user named
  std::string setting;  // "NAME=VALUE", as the plugin's open takes it
};

// Parses "[PLUGIN:]NAME=VALUE". Returns INVALID_ARGUMENT, saying what is missing.
absl::StatusOr<PluginOption> ParsePluginOption(const std::string& text);
// Parses several, separated by semicolons. An empty text has none.
absl::StatusOr<std::vector<PluginOption>> ParsePluginOptions(const std::string& text);

// Returns whether the option is for this plugin.
bool IsFor(const PluginOption& option, const Candidate& plugin);

// Returns the text for the plugin's open: the settings that are for it, separated by semicolons.
std::string OptionsFor(const std::vector<PluginOption>& options, const Candidate& plugin);

// Returns the NAME of a file libtrine-backend-NAME.so, or the file's name if it has another form.
std::string NameOfFile(const std::string& path);

}  // namespace trine
