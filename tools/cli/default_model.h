// The model that comes with the program, for commands that are given none.
#ifndef TRINE_TOOLS_CLI_DEFAULT_MODEL_H_
#define TRINE_TOOLS_CLI_DEFAULT_MODEL_H_

#include <string>

namespace trine {

// In the share folder beside the program's own, installed or built.
std::string DefaultModelPath();

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_DEFAULT_MODEL_H_
