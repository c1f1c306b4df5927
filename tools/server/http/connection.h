// One client's connection: requests are read one after the other, and each is answered before the
// next one is looked at. A read is pending all the while, as that is how one learns that a client
// has gone. All of it runs on the socket's strand but Start, CloseWhenIdle and CloseNow.
#ifndef TRINE_TOOLS_SERVER_HTTP_CONNECTION_H_
#define TRINE_TOOLS_SERVER_HTTP_CONNECTION_H_

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "tools/server/http/answer_pipe.h"
#include "tools/server/http/request_reader.h"
#include "tools/server/http/server_context.h"

namespace trine::server {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using Place = ConnectionTable::Place;

  // The socket's executor is a strand. `address`: what the table counts it by.
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
    kReading,    // a request, or waiting for one
    kAnswering,  // somebody has the exchange
    kFailing,    // an error is being sent, and ends the connection
    kLingering,  // all is sent: the client may close
    kClosed,
  };

  void SetUpSocket();
  void Read();
  void OnRead(const Error& error, size_t bytes);
  void OnEnd();
  void Advance();
  void Dispatch();
  std::optional<HttpRefusal> Refusal() const;
  // False: there is too much already, of all connections.
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
  // The client has left, as far as one can see: with nobody to read, or only with nothing to say.
  void ClientGone();
  void Lost();

  // Two things may be waited for at once: the client's bytes, and that it takes ours.
  void Arm();
  void OnTimer();
  void OnReadLate();
  // Where reading has stopped because too much is kept.
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
  bool first_ = true;      // no request has come yet
  bool draining_ = false;  // the server is: this answer is the last one
  bool ended_ = false;     // the client sends nothing more
  bool busy_ = false;
  bool reading_ = false, writing_ = false;

  RequestReader reader_;
  Clock::time_point body_since_;
  size_t counted_body_ = 0;  // of what all connections have read
  std::array<char, 16 << 10> area_;
  std::string in_;   // come, and not used yet
  std::string own_;  // to send that is not the pipe's
  std::string out_;  // being sent: not to be touched meanwhile
  size_t out_sent_ = 0;
  bool out_is_pipes_ = false;
  AnswerForm form_;
  std::shared_ptr<AnswerPipe> pipe_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_HTTP_CONNECTION_H_
