// A plugin's table as this host may use it: checked, copied to the host's own size, and called with
// every exception caught at the border.
#ifndef TRINE_PLUGINS_PLUGIN_TABLE_H_
#define TRINE_PLUGINS_PLUGIN_TABLE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trine/backend.h"

namespace trine {

// The table a plugin has for this host. One that has none because it was built before ABI 1.0 gives
// that of its own age, so that AdoptTable can name it; null when there is neither. May throw, as
// what it calls may.
const trine_plugin* QueryTable(trine_plugin_query_fn query);

// A copy of `theirs` in this host's size: a shorter table's missing tail reads as null, a longer
// one's is ignored. Refused with a sentence when it is null, of another major, too short, of
// another sanitizer, or lacks a required function or a valid name.
absl::StatusOr<trine_plugin> AdoptTable(const trine_plugin* theirs);

// The status and sentence of a failed call, `what` in front. OK stays OK.
absl::Status ToStatus(trine_status status, const trine_error& err, const std::string& what);

// Calls into a plugin. An exception that comes out is the plugin's breach of the ABI and becomes
// INTERNAL; nothing propagates into the host.
// `what` gives the words in front of an error, and is asked for them if there is one.
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

// The same for calls that return nothing or a plain value: what they would have returned is
// `otherwise` after a throw, which has nowhere else to go.
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
  } catch (...) {  // a destructor has nobody to tell
  }
}

}  // namespace trine

#endif  // TRINE_PLUGINS_PLUGIN_TABLE_H_
