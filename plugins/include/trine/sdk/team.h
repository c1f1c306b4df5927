// Runs work on the host's team of threads, so that ThreadSanitizer sees which accesses are ordered.
//
// The host's calls order what one thread writes before what another thread reads after them.
// ThreadSanitizer knows that order only of code that was built with it, and an installed Trine was
// not. So a plugin that is built with ThreadSanitizer states the order here. In other builds these
// functions are the host's calls and nothing else.
#ifndef TRINE_SDK_TEAM_H_
#define TRINE_SDK_TEAM_H_

#include "trine/backend.h"

extern "C" {
void __tsan_acquire(void* address);  // defined by ThreadSanitizer's runtime
void __tsan_release(void* address);
}

namespace trine::sdk {

inline constexpr bool kThreadSanitizer = TRINE_SANITIZER_HERE == TRINE_SANITIZER_THREAD;

// Makes what this thread has written visible to the threads of the team that call OrderAfter later.
inline void OrderBefore(const trine_host& host) {
  if constexpr (kThreadSanitizer) __tsan_release(host.self);
}
inline void OrderAfter(const trine_host& host) {
  if constexpr (kThreadSanitizer) __tsan_acquire(host.self);
}

// Waits until all workers of the team have called it. Each sees what the others wrote before.
inline void WaitForTeam(const trine_host& host) {
  OrderBefore(host);
  host.barrier(host.self);
  OrderAfter(host);
}

// Runs fn(arg, worker, workers) on each worker of the team, as trine_host::parallel_run says.
inline trine_status RunOnTeam(const trine_host& host, trine_worker_fn fn, void* arg) {
  if constexpr (!kThreadSanitizer) return host.parallel_run(host.self, fn, arg);
  struct Ordered {
    const trine_host& host;
    trine_worker_fn fn;
    void* arg;
  } ordered{host, fn, arg};
  OrderBefore(host);
  const auto run = [](void* given, uint32_t worker, uint32_t workers) {
    const Ordered& call = *static_cast<const Ordered*>(given);
    OrderAfter(call.host);
    call.fn(call.arg, worker, workers);
    OrderBefore(call.host);
  };
  const trine_status status = host.parallel_run(host.self, run, &ordered);
  OrderAfter(host);
  return status;
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_TEAM_H_
