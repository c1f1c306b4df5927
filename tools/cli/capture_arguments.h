// The options of commands that can record their passes, for trine replay.
#ifndef TRINE_TOOLS_CLI_CAPTURE_ARGUMENTS_H_
#define TRINE_TOOLS_CLI_CAPTURE_ARGUMENTS_H_

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "runtime/graph/capture_recorder.h"
#include "tools/cli/engine_arguments.h"

namespace trine {

struct CaptureArguments {
  std::string path;  // "": nothing is recorded
  std::string level = "layers";
  bool values = false;
};

void AddCaptureOptions(CLI::App* command, CaptureArguments* arguments);

// Null where none was asked for; else it outlives the engine that is loaded with these arguments,
// and is finished when nothing runs there any more.
absl::StatusOr<std::shared_ptr<CaptureRecorder>> BeginCapture(const CaptureArguments& arguments,
                                                              EngineArguments* engine);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_CAPTURE_ARGUMENTS_H_
