// The model that comes with the program, for commands that are given none.
#ifndef TRINE_TOOLS_CLI_DEFAULT_MODEL_H_
#define TRINE_TOOLS_CLI_DEFAULT_MODEL_H_

#include <string>

namespace trine {

// Beside the sources the program was built from, or in the installed share folder; where it would
// be installed when it is in neither.
std::string DefaultModelPath();

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_DEFAULT_MODEL_H_
