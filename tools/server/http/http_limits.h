// What one client may take of the server: bytes, time and connections.
#ifndef TRINE_TOOLS_SERVER_HTTP_HTTP_LIMITS_H_
#define TRINE_TOOLS_SERVER_HTTP_HTTP_LIMITS_H_

#include <chrono>
#include <cstddef>

namespace trine::server {

struct HttpLimits {
  size_t header_bytes = size_t{16} << 10;  // of the request line and all headers
  size_t body_bytes = size_t{8} << 20;
  size_t all_body_bytes = size_t{256} << 20;  // that are being read, of all connections

  // From the first byte of a request (of the first one: from the connection's beginning).
  std::chrono::milliseconds header_time{10'000};
  // A body may take this long, and a second more for each `body_rate` bytes of it that have come.
  std::chrono::milliseconds body_time{60'000};
  size_t body_rate = size_t{16} << 10;
  std::chrono::milliseconds idle_time{75'000};   // between two requests
  std::chrono::milliseconds write_time{30'000};  // until the client takes a single further byte
  // For the client to close after the last answer. To close first could destroy an answer that it
  // has not read yet.
  std::chrono::milliseconds linger_time{3'000};

  size_t connections = 512;
  size_t connections_per_address = 256;  // IPv6: of 64 bits
  size_t refused_connections = 64;       // that are told so at once; others are just closed

  size_t pipelined_bytes = size_t{64} << 10;  // kept of further requests, while one is answered
  size_t waiting_bytes = size_t{1} << 20;     // of a stream that the client has not taken
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_HTTP_HTTP_LIMITS_H_
