// What a device must do before it may call itself exact: small graphs that use each of its kernels,
// run as plans, against the reference.
#ifndef TRINE_BACKENDS_COMMON_SELF_TEST_H_
#define TRINE_BACKENDS_COMMON_SELF_TEST_H_

#include <functional>
#include <string>

#include "trine/backend.h"

namespace trine::backends {

struct SelfTestResult {
  bool done = true;     // else a graph could not be run, which says nothing of its bits
  std::string failure;  // "" when every bit was equal, else the ops that differed, or why not run
};

// `table` has the calls for buffers, plans and layouts; the rest of it may be absent. `begins` is
// told what is next: a driver that compiles may take long, and who waits wants a sign of life.
SelfTestResult RunSelfTest(const trine_plugin& table, trine_device* device,
                           const std::function<void(const std::string& name)>& begins);

}  // namespace trine::backends

#endif  // TRINE_BACKENDS_COMMON_SELF_TEST_H_
