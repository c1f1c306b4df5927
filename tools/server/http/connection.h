// The connections of a server, and the state that they share.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/server/http/answer_pipe.h"
#include "tools/server/http/http_server.h"
#include "tools/server/http/request_reader.h"

namespace trine::server {

class Connection;

// Keeps a server's connections: admits them by the limits, counts the busy ones, and lists them for
// shutdown. Thread-safe.
class ConnectionTable {
 public:
  explicit ConnectionTable(const HttpLimits& limits) : limits_(limits) {}

  enum class Place { kServed, kRefused, kNone };
  // Takes a place for a connection from `address`, until Leave. Returns kServed if the connection
  // is to be served, kRefused if it is to be answered 503, and kNone if it is to be closed; kNone
  // takes no place.
  Place Enter(const std::string& address);
  // Returns false if the table is closed; the connection must not start then.
  bool Add(std::shared_ptr<Connection> connection);
  // Gives the place back. The connection need not have been added.
  void Leave(Connection* connection, const std::string& address, Place place);

  // Count a busy connection. A connection is busy from the first byte of a request until its answer
  // is sent.
  void Begin();
  void End();
  bool WaitUntilIdle(std::chrono::milliseconds limit);

  // Admits no more connections. Returns the connections that were added and have not left.
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

// The state that all connections of a server share. Outlives them.
struct ServerContext {
  ServerContext(HttpServerOptions o, HttpHandler h)
      : options(std::move(o)), handler(std::move(h)), table(options.limits) {}

  const HttpServerOptions options;
  const HttpHandler handler;
  ConnectionTable table;
  std::atomic<size_t> body_bytes{0};  // the bytes of all bodies being read

  struct {
    std::atomic<uint64_t> accepted{0}, refused{0}, accept_errors{0}, requests{0}, bad_requests{0},
        timeouts{0}, gone{0}, bytes_in{0}, bytes_out{0};
  } counts;
};

// One client's connection. Reads requests one after the other and answers each before it looks at
// the next. Always keeps a read pending, because only a read tells that the client has gone.
// All functions but Start, CloseWhenIdle and CloseNow run on the socket's strand.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using Place = ConnectionTable::Place;

  // The socket's executor must be a strand. The table counts connections of the same `address`
  // together.
  Connection(Socket socket, std::string peer, std::string address, Place place,
             ServerContext* server);
  ~Connection();

  void Start();
  void CloseWhenIdle();
  void CloseNow();

 private:
  using Clock = std::chrono::steady_clock;
  using Error = boost::system::error_code;
  enum class Phase {
    kReading,    // reading a request, or waiting for one
    kAnswering,  // the handler has the exchange
    kFailing,    // sending an error, which ends the connection
    kLingering,  // everything is sent; waiting for the client to close
    kClosed,
  };

  void SetUpSocket();
  void Read();
  void OnRead(const Error& error, size_t bytes);
  void OnEnd();
  void Advance();
  void Dispatch();
  std::optional<HttpRefusal> Refusal() const;
  // Sets this connection's part of the server's body_bytes to `bytes`. Returns false if all
  // connections together hold too many.
  bool CountBody(size_t bytes);
  void Fail(int status, std::string_view message);
  std::string ErrorAnswer(int status, std::string_view message, bool head_only) const;

  void Flush();
  void OnWritten(const Error& error, size_t bytes);
  void OnAllTaken(AnswerPipe::State state);
  void Answered();

  void SetBusy(bool busy);
  void Linger();
  void Close();
  // Tells the pipe that the client has gone, or has at least closed its own direction.
  void ClientGone();
  void Lost();

  // The timer serves two deadlines: for bytes from the client, and for the client to take bytes.
  void Arm();
  void OnTimer();
  void OnReadLate();
  // Returns whether the client has closed. Needed when reading has stopped because in_ is full.
  bool PeerHasClosed();

  ServerContext* const server_;
  const HttpLimits& limits_;
  const std::string peer_, address_;
  const Place place_;
  Socket socket_;
  boost::asio::steady_timer timer_;
  Clock::time_point read_deadline_ = Clock::time_point::max();
  Clock::time_point write_deadline_ = Clock::time_point::max();
  Clock::time_point armed_ = Clock::time_point::max();

  Phase phase_ = Phase::kReading;
  bool first_ = true;      // no request has been read yet
  bool draining_ = false;  // the server is stopping: this answer is the last one
  bool ended_ = false;     // the client sends nothing more
  bool busy_ = false;
  bool reading_ = false, writing_ = false;

  RequestReader reader_;
  Clock::time_point body_since_;
  size_t counted_body_ = 0;  // this connection's part of the server's body_bytes
  std::array<char, 16 << 10> area_;
  std::string in_;   // bytes that were received and not used yet
  std::string own_;  // bytes to be sent that do not come from the pipe
  std::string out_;  // bytes being sent: must not change until they are sent
  size_t out_sent_ = 0;
  bool out_is_pipes_ = false;
  AnswerForm form_;
  std::shared_ptr<AnswerPipe> pipe_;
};

}  // namespace trine::server
