// The wrapper's function table.
#ifndef TRINE_PLUGINS_FAULT_TABLE_H_
#define TRINE_PLUGINS_FAULT_TABLE_H_

#include "trine/backend.h"

namespace trine::fault {

// Identity and optional functions are those of `real`. Its `open` refuses: a backend is opened
// before it is wrapped.
trine_plugin WrapTable(const trine_plugin& real);

}  // namespace trine::fault

#endif  // TRINE_PLUGINS_FAULT_TABLE_H_
