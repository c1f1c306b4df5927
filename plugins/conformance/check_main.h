// The child's side of `trine plugin check`: loads one plugin, runs the kit on it and reports on
// kReportFd, one JSON object a line:
//
//   {"event":"plugin","name":"cpu","version":"1.0","abi":"1.0"}
//   {"event":"begin","check":"memory/bounds"}
//   {"event":"alive"}
//   {"event":"end","check":"memory/bounds","outcome":"pass","detail":"","seconds":0.01}
//   {"event":"done"}
//
// A report without its last line means that the plugin took the process down.
#ifndef TRINE_PLUGINS_CONFORMANCE_CHECK_MAIN_H_
#define TRINE_PLUGINS_CONFORMANCE_CHECK_MAIN_H_

#include <string>
#include <vector>

#include "plugins/conformance/kit.h"

namespace trine::conformance {

// argv: "check", the plugin's path, flags as KitFlags writes them. Returns an exit code.
int CheckMain(int argc, char** argv);

// The options as command-line arguments of the child.
std::vector<std::string> KitFlags(const KitOptions& options);

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_CHECK_MAIN_H_
