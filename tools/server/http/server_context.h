// What all connections of a server share. It outlives them.
#ifndef TRINE_TOOLS_SERVER_HTTP_SERVER_CONTEXT_H_
#define TRINE_TOOLS_SERVER_HTTP_SERVER_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "tools/server/http/connection_table.h"
#include "tools/server/http/http_server.h"

namespace trine::server {

struct ServerContext {
  ServerContext(HttpServerOptions o, HttpHandler h)
      : options(std::move(o)), handler(std::move(h)), table(options.limits) {}

  const HttpServerOptions options;
  const HttpHandler handler;
  ConnectionTable table;
  std::atomic<size_t> body_bytes{0};  // of requests that are being read

  struct {
    std::atomic<uint64_t> accepted{0}, refused{0}, accept_errors{0}, requests{0}, bad_requests{0},
        timeouts{0}, gone{0}, bytes_in{0}, bytes_out{0};
  } counts;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_HTTP_SERVER_CONTEXT_H_
