// What a server has done so far.
#ifndef TRINE_TOOLS_SERVER_HTTP_HTTP_COUNTERS_H_
#define TRINE_TOOLS_SERVER_HTTP_HTTP_COUNTERS_H_

#include <cstdint>

namespace trine::server {

struct HttpCounters {
  uint64_t open = 0;           // connections now, without those that are being refused
  uint64_t accepted = 0;       // connections ever
  uint64_t refused = 0;        // of those: one too many
  uint64_t accept_errors = 0;  // file descriptors used up, and the like
  uint64_t requests = 0;       // that reached the handler
  uint64_t bad_requests = 0;   // answered with an error before that
  uint64_t timeouts = 0;       // requests that came too slowly, clients that took nothing
  uint64_t gone = 0;           // clients that left before their answer
  uint64_t bytes_in = 0, bytes_out = 0;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_HTTP_HTTP_COUNTERS_H_
