// Outcomes as words, in reports and on the way from the child.
#ifndef TRINE_PLUGINS_CONFORMANCE_OUTCOME_NAME_H_
#define TRINE_PLUGINS_CONFORMANCE_OUTCOME_NAME_H_

#include <string>

#include "plugins/conformance/kit.h"

namespace trine::conformance {

inline const char* OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return "pass";
    case Outcome::kFail:
      return "fail";
    case Outcome::kSkip:
      return "skip";
  }
  return "";
}

// Anything unknown is a failure.
inline Outcome OutcomeOf(const std::string& name) {
  return name == "pass" ? Outcome::kPass : name == "skip" ? Outcome::kSkip : Outcome::kFail;
}

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_OUTCOME_NAME_H_
