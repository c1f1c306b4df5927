// The connections of a server: who is let in, who is at work, and how all of them are reached.
// Thread-safe.
#ifndef TRINE_TOOLS_SERVER_HTTP_CONNECTION_TABLE_H_
#define TRINE_TOOLS_SERVER_HTTP_CONNECTION_TABLE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/server/http/http_limits.h"

namespace trine::server {

class Connection;

class ConnectionTable {
 public:
  explicit ConnectionTable(const HttpLimits& limits) : limits_(limits) {}

  enum class Place { kServed, kRefused, kNone };
  // A place for a connection from `address`, until Leave. kNone has nothing to leave.
  Place Enter(const std::string& address);
  // False: the table is closed, and the connection may not begin.
  bool Add(std::shared_ptr<Connection> connection);
  // Whether it was added or not.
  void Leave(Connection* connection, const std::string& address, Place place);

  // Of a connection that has a request, from its first byte until its answer is sent.
  void Begin();
  void End();
  bool WaitUntilIdle(std::chrono::milliseconds limit);

  // Nobody enters from here on. Gives those who are inside.
  std::vector<std::shared_ptr<Connection>> Close();
  size_t served() const;

 private:
  const HttpLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::map<Connection*, std::shared_ptr<Connection>> connections_;
  std::map<std::string, size_t> by_address_;
  size_t served_ = 0, refused_ = 0, busy_ = 0;
  bool closed_ = false;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_HTTP_CONNECTION_TABLE_H_
