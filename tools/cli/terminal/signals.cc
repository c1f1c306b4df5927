#include "tools/cli/terminal/signals.h"

#include <csignal>

namespace trine {
namespace {

volatile std::sig_atomic_t flag_raised = 0;
void RaiseFlag(int) { flag_raised = 1; }

}  // namespace

ScopedSignals::ScopedSignals(std::initializer_list<int> signals, Handler handler) {
  struct sigaction wanted {};
  wanted.sa_handler = handler;
  wanted.sa_flags = SA_RESTART;
  sigemptyset(&wanted.sa_mask);
  for (const int number : signals) {
    struct sigaction before {};
    if (sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    if (sigaction(number, &wanted, nullptr) == 0) before_.emplace_back(number, before);
  }
}

ScopedSignals::~ScopedSignals() {
  for (const auto& [number, before] : before_) sigaction(number, &before, nullptr);
}

InterruptFlag::InterruptFlag()
    : ending_({SIGINT, SIGTERM, SIGHUP}, RaiseFlag), file_size_({SIGXFSZ}, SIG_IGN) {}

bool InterruptFlag::raised() const { return flag_raised != 0; }

}  // namespace trine
