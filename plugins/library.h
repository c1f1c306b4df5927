// A plugin's shared object, loaded into this process, where it stays until the process ends.
#ifndef TRINE_PLUGINS_LIBRARY_H_
#define TRINE_PLUGINS_LIBRARY_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trine/backend.h"

namespace trine {

class PluginLibrary {
 public:
  // What can be said of the file without loading it: readable, for this machine, a plugin, of this
  // program's sanitizer.
  static absl::Status CheckFile(const std::string& path);

  // Checks the file and loads it for good, without calling what it exports. Says what a person can
  // do about a library that is missing.
  static absl::StatusOr<trine_plugin_query_fn> LoadQuery(const std::string& path);

  // Checks the file, loads it and adopts its table. Runs the plugin's constructors, so a plugin
  // nobody has probed yet belongs into a child process (plugins/probe.h).
  static absl::StatusOr<std::unique_ptr<PluginLibrary>> Load(const std::string& path);

  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  const trine_plugin& table() const { return table_; }    // in this host's size
  const trine_plugin* raw_table() const { return raw_; }  // as the plugin gave it
  trine_plugin_query_fn query() const { return query_; }
  const std::string& path() const { return path_; }

 private:
  PluginLibrary() = default;

  std::string path_;
  trine_plugin_query_fn query_ = nullptr;
  const trine_plugin* raw_ = nullptr;
  trine_plugin table_{};
};

}  // namespace trine

#endif  // TRINE_PLUGINS_LIBRARY_H_
