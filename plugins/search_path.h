// Where plugins, and the program that probes them, are looked for. Never the current folder: what
// lies in a folder someone happens to stand in must not become code that runs.
#ifndef TRINE_PLUGINS_SEARCH_PATH_H_
#define TRINE_PLUGINS_SEARCH_PATH_H_

#include <string>
#include <vector>

namespace trine {

struct SearchOptions {
  std::vector<std::string> explicit_paths;  // files or folders the user named, first of all
  bool use_environment = true;              // TRINE_PLUGIN_PATH, colon-separated folders or files
  bool use_default_folders = true;          // beside the program and libtrine.so, installed folder
};

struct Candidate {
  std::string path;
  std::string found_by;  // "named by the user", "TRINE_PLUGIN_PATH", "beside the program", ...
  bool named = false;    // the file itself was named: it is reported even when it is not there
};

struct SearchedFolder {
  std::string path;
  std::string found_by;
  bool exists = false;
  std::string error;  // why it could not be looked into, though it is there
};

struct SearchResult {
  std::vector<Candidate> candidates;    // in order of precedence, each file once
  std::vector<SearchedFolder> folders;  // all that were looked into, or would have been
};

SearchResult FindPlugins(const SearchOptions& options);

// The path of trine-probe, or "" with the places looked at in `looked_at`. TRINE_PROBE names
// another one, by an absolute path.
std::string FindProbeProgram(std::vector<std::string>* looked_at);

}  // namespace trine

#endif  // TRINE_PLUGINS_SEARCH_PATH_H_
