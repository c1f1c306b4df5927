// kit/coverage: that there was something to check. A plugin must not conform by doing nothing.
#include "absl/strings/str_cat.h"
#include "plugins/conformance/sections.h"

namespace trine::conformance {
namespace {

void NothingToCheck(Trial& trial, const KitOptions& options, const std::string& why) {
  const std::string text = absl::StrCat("nothing to check: ", why);
  options.allow_no_device ? trial.Skip(text) : trial.Fail(text);
}

}  // namespace

void RunNoDeviceCheck(Runner& runner, const KitOptions& options, const Survey& survey) {
  // Whatever the filter says: no other check is there to tell.
  runner.RunUnfiltered("kit/coverage", [&](Trial& trial) {
    if (!trial.ExpectOk(survey.opened, "nothing to check: open")) return;
    NothingToCheck(trial, options,
                   survey.unusable.empty()
                       ? "the plugin has no device"
                       : absl::StrCat("the plugin has no usable device: ", survey.unusable));
  });
}

void RunCoverageChecks(Bench& bench) {
  bench.Run("kit/coverage", [&](Trial& trial, Session& s) {
    Random random(bench.options().seed);
    std::string reason;
    for (const OpGroup& group : AllOpGroups()) {
      for (OpCase& op_case : group.make(random)) {
        if (Claim(trial, s, &op_case.graph, &reason) != TRINE_SUPPORT_NO) return;
      }
      trial.Alive();
    }
    NothingToCheck(trial, bench.options(),
                   absl::StrCat("the device claims no op at all; the last refusal: ", reason));
  });
}

}  // namespace trine::conformance
