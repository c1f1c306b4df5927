// Loads a plugin's shared object into this process, where it stays until the process ends. Checks
// its table, copies it to the host's own size, and calls it so that no exception gets through to
// the host.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trine/backend.h"

namespace trine {

class PluginLibrary {
 public:
  // Checks without loading the file that it is readable, built for this machine, a plugin, and
  // built with a sanitizer that this process has, or with the same as this program: none.
  static absl::Status CheckFile(const std::string& path);

  // Checks the file and loads it for good, without calling what it exports. The error names a
  // missing library and what a person can do about it.
  static absl::StatusOr<trine_plugin_query_fn> LoadQuery(const std::string& path);

  // Checks the file, loads it and adopts its table. Runs the plugin's constructors, so load a
  // plugin that has not been probed only in a child process (plugins/probe.h).
  static absl::StatusOr<std::unique_ptr<PluginLibrary>> Load(const std::string& path);

  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  const trine_plugin& table() const { return table_; }  // copied to this host's size
  trine_plugin_query_fn query() const { return query_; }

 private:
  PluginLibrary() = default;

  trine_plugin_query_fn query_ = nullptr;
  trine_plugin table_{};
};

// Returns the plugin's table for this host. A plugin built before ABI 1.0 has none; for such a
// plugin returns its older table, so that AdoptTable can name its version. Returns null if there is
// no table at all. Passes on any exception of `query`.
const trine_plugin* QueryTable(trine_plugin_query_fn query);

// Returns a copy of `theirs` in this host's size: members missing from a shorter table are null,
// the tail of a longer one is ignored. Fails with a sentence if the table is null, has another
// major version, is too short, was built with a sanitizer that this process lacks, or lacks a
// required function or a valid name.
absl::StatusOr<trine_plugin> AdoptTable(const trine_plugin* theirs);

// Returns the status of a failed call, with "`what`: " in front of its message. OK stays OK.
absl::Status ToStatus(trine_status status, const trine_error& err, const std::string& what);

// Calls into a plugin. An exception breaches the ABI: it becomes INTERNAL and does not propagate
// into the host. `what()` is called for errors only; its text begins the message.
template <class What, class Call>
absl::Status CallPluginAs(What what, Call call) {
  trine_error err{};
  trine_status status = TRINE_OK;
  try {
    status = call(&err);
  } catch (...) {
    return absl::InternalError(what() + ": the plugin threw an exception across the ABI");
  }
  return status == TRINE_OK ? absl::OkStatus() : ToStatus(status, err, what());
}
template <class Call>
absl::Status CallPlugin(const std::string& what, Call call) {
  return CallPluginAs([&] { return what; }, call);
}

// Calls a function of a plugin that returns no status. Returns `otherwise` after an exception.
template <class Call, class Value>
Value CallPluginOr(Value otherwise, Call call) noexcept {
  try {
    return call();
  } catch (...) {
    return otherwise;
  }
}
template <class Call>
void CallPluginQuietly(Call call) noexcept {
  try {
    call();
  } catch (...) {  // a destructor can't report it
  }
}

}  // namespace trine
