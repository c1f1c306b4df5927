// The conformance kit: every rule of trine/backend.h put to a plugin, check by check.
//
// RunKit calls the plugin in the calling process, and a plugin under test may crash, hang or exit:
// programs use CheckPlugin (check.h), which runs the kit in a child.
#ifndef TRINE_PLUGINS_CONFORMANCE_KIT_H_
#define TRINE_PLUGINS_CONFORMANCE_KIT_H_

#include <cstdint>
#include <string>

#include "trine/backend.h"

namespace trine::conformance {

enum class Outcome { kPass, kFail, kSkip };

// The answer to one check, named "section/name".
struct Finding {
  std::string check;
  Outcome outcome = Outcome::kPass;
  std::string detail;  // what is wrong, why it was skipped, or what is worth knowing
  double seconds = 0;
};

// Hears of each check as it begins and ends, so that a crash can be put down to the right one.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void Begin(const std::string& check) = 0;
  virtual void End(const Finding& finding) = 0;
  // Now and then during a long check: the plugin is slow, not stuck.
  virtual void Alive() {}
};

struct KitOptions {
  int create_destroy_cycles = 1000;
  uint32_t workers = 5;  // the largest team; results are compared with those of smaller ones
  uint64_t seed = 1;
  std::string filter;        // only checks whose names contain it; "" = all
  std::string options;       // for the plugin's open
  std::string resume_after;  // leaves out every check up to this one; "" = none
  bool long_run = false;     // no time limits on the cycles, more random cases
  // A device that is not there is no failure: GPU plugins on machines without the GPU.
  bool allow_no_device = false;
};

void RunKit(trine_plugin_query_fn query, const KitOptions& options, Sink& sink);

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_KIT_H_
