// A socket that listens, and the loop that accepts from it. It goes on whatever accept says, until
// it is closed.
#ifndef TRINE_TOOLS_SERVER_HTTP_LISTENER_H_
#define TRINE_TOOLS_SERVER_HTTP_LISTENER_H_

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/server/http/server_context.h"

namespace trine::server {

class Listener : public std::enable_shared_from_this<Listener> {
 public:
  using Tcp = boost::asio::ip::tcp;

  // One for each address of the host that the options name, all with the same port. An address
  // that this machine does not have is left out, if it has another one.
  static absl::StatusOr<std::vector<std::shared_ptr<Listener>>> Open(boost::asio::io_context* io,
                                                                     ServerContext* server);

  Listener(boost::asio::io_context* io, ServerContext* server);

  void Start();
  // When it returns the system refuses whoever connects. From any thread, any number of times.
  void Close();
  const Tcp::endpoint& endpoint() const { return endpoint_; }

 private:
  boost::system::error_code Bind(const Tcp::endpoint& endpoint);
  void Accept();
  void OnAccepted(const boost::system::error_code& error, Tcp::socket socket);
  void Admit(Tcp::socket socket);

  boost::asio::io_context* const io_;
  ServerContext* const server_;
  Tcp::acceptor acceptor_;  // on a strand
  boost::asio::steady_timer pause_;
  Tcp::endpoint endpoint_;
  std::atomic<bool> closed_ = false;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_HTTP_LISTENER_H_
