// Finds plugins and the program that probes them. Never looks into the current folder: a file in
// the folder that a user happens to be in must not become code that runs.
#pragma once

#include <string>
#include <vector>

namespace trine {

struct SearchOptions {
  std::vector<std::string> explicit_paths;  // files or folders that the user named; come first
  bool use_environment = true;      // read TRINE_PLUGIN_PATH, colon-separated folders or files
  bool use_default_folders = true;  // the program's folder, libtrine.so's, the installed one
};

struct Candidate {
  std::string path;
  std::string found_by;  // "named by the user", "TRINE_PLUGIN_PATH", "beside the program", ...
  bool named = false;    // the user named the file: it is reported even if it does not exist
  bool own = false;      // one of Trine's own plugins, found where the program has them
};

struct SearchedFolder {
  std::string path;
  std::string found_by;
  bool exists = false;
  std::string error;   // why an existing folder could not be searched
  size_t plugins = 0;  // the number of files in it that are plugins by their names
};

struct SearchResult {
  std::vector<Candidate> candidates;    // in order of precedence, each file once
  std::vector<SearchedFolder> folders;  // all folders of the search, also those that do not exist
};

// Lists the files of plugins in these places, and loads none of them.
SearchResult FindPlugins(const SearchOptions& options);

// Returns the path of trine-probe. If there is none, returns "" and sets `looked_at`, which may be
// null, to the paths that it tried. TRINE_PROBE names another program, by an absolute path.
std::string FindProbeProgram(std::vector<std::string>* looked_at);

}  // namespace trine
