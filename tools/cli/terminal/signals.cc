#include "tools/cli/terminal/signals.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace trine {
namespace {

volatile std::sig_atomic_t flag_raised = 0;
void RaiseFlag(int) { flag_raised = 1; }

// The state of OrderlyEnd. The pipe is made before the handler is set, and stays: a handler may run
// on any thread, also late.
volatile std::sig_atomic_t end_raised = 0;
timespec end_raised_at{};
OrderlyEnd::Stop end_stop = nullptr;
int end_pipe[2] = {-1, -1};

void BeginEnd(int) {
  const int saved = errno;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (end_raised != 0) {
    const double waited = static_cast<double>(now.tv_sec - end_raised_at.tv_sec) +
                          1e-9 * static_cast<double>(now.tv_nsec - end_raised_at.tv_nsec);
    if (waited > 0.3) _exit(kInterrupted);
    errno = saved;
    return;
  }
  end_raised_at = now;
  end_raised = 1;
  if (end_stop != nullptr) end_stop();
  if (end_pipe[1] >= 0) (void)!write(end_pipe[1], "", 1);
  errno = saved;
}

OrderlyEnd::Stop PrepareEnd(OrderlyEnd::Stop stop) {
  if (end_pipe[0] < 0 && pipe2(end_pipe, O_CLOEXEC) != 0) end_pipe[0] = end_pipe[1] = -1;
  return end_stop = stop;
}

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

OrderlyEnd::OrderlyEnd(Stop stop)
    : ending_({SIGINT, SIGTERM, SIGHUP}, (PrepareEnd(stop), BeginEnd)) {}

bool OrderlyEnd::raised() const { return end_raised != 0; }

int OrderlyEnd::wake_file() const { return end_pipe[0]; }

}  // namespace trine
