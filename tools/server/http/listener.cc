#include "tools/server/http/listener.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/server/http/connection.h"

namespace trine::server {
namespace {

using boost::asio::ip::address;
using Error = boost::system::error_code;

// After an accept that failed. What it lacks is rarely there at once.
constexpr std::chrono::milliseconds kPause{100};

absl::Status CannotListen(const HttpServerOptions& options, const Error& error) {
  const std::string what =
      absl::StrCat("can't listen on ", options.host, " port ", options.port, ": ", error.message());
  if (error == boost::asio::error::address_in_use) return absl::AlreadyExistsError(what);
  if (error == boost::asio::error::access_denied) return absl::PermissionDeniedError(what);
  return absl::InvalidArgumentError(what);
}

// A client of a socket for both protocols looks like IPv6, and is not.
address Plain(const address& from) {
  if (!from.is_v6() || !from.to_v6().is_v4_mapped()) return from;
  return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, from.to_v6());
}

// Whoever has one IPv6 address usually has 64 bits of them.
std::string CountedAs(const address& from) {
  if (!from.is_v6()) return from.to_string();
  const auto bytes = from.to_v6().to_bytes();
  return {reinterpret_cast<const char*>(bytes.data()), 8};
}

absl::StatusOr<std::vector<Listener::Tcp::endpoint>> Resolve(boost::asio::io_context* io,
                                                             const HttpServerOptions& options) {
  std::string host = options.host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  Error error;
  if (host.empty()) return CannotListen(options, boost::asio::error::host_not_found);
  Listener::Tcp::resolver resolver(*io);
  const auto found = resolver.resolve(
      host, std::to_string(options.port),
      boost::asio::ip::resolver_base::passive | boost::asio::ip::resolver_base::numeric_service,
      error);
  if (error) return CannotListen(options, error);
  std::vector<Listener::Tcp::endpoint> endpoints;
  for (const auto& entry : found) {
    if (std::find(endpoints.begin(), endpoints.end(), entry.endpoint()) == endpoints.end()) {
      endpoints.push_back(entry.endpoint());
    }
  }
  return endpoints;
}

}  // namespace

absl::StatusOr<std::vector<std::shared_ptr<Listener>>> Listener::Open(boost::asio::io_context* io,
                                                                      ServerContext* server) {
  auto endpoints = Resolve(io, server->options);
  if (!endpoints.ok()) return endpoints.status();
  std::vector<std::shared_ptr<Listener>> listeners;
  Error missing = boost::asio::error::host_not_found;
  for (Tcp::endpoint endpoint : *endpoints) {
    if (!listeners.empty()) endpoint.port(listeners.front()->endpoint().port());
    auto listener = std::make_shared<Listener>(io, server);
    const Error error = listener->Bind(endpoint);
    if (error == boost::asio::error::address_family_not_supported ||
        error == boost::system::errc::address_not_available) {
      missing = error;
    } else if (error) {
      return CannotListen(server->options, error);
    } else {
      listeners.push_back(std::move(listener));
    }
  }
  if (listeners.empty()) return CannotListen(server->options, missing);
  return listeners;
}

Listener::Listener(boost::asio::io_context* io, ServerContext* server)
    : io_(io),
      server_(server),
      acceptor_(boost::asio::make_strand(*io)),
      pause_(acceptor_.get_executor()) {}

Error Listener::Bind(const Tcp::endpoint& endpoint) {
  Error error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error && server_->options.reuse) {
    acceptor_.set_option(boost::asio::socket_base::reuse_address(true), error);
  }
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(boost::asio::socket_base::max_listen_connections, error);
  if (!error) endpoint_ = acceptor_.local_endpoint(error);
  return error;
}

void Listener::Start() {
  boost::asio::post(acceptor_.get_executor(), [self = shared_from_this()] { self->Accept(); });
}

void Listener::Close() {
  if (closed_.exchange(true)) return;
  // The descriptor is let go on the strand, which may be busy. Until then nobody else does.
  shutdown(acceptor_.native_handle(), SHUT_RDWR);
  boost::asio::post(acceptor_.get_executor(), [self = shared_from_this()] {
    Error ignored;
    self->acceptor_.close(ignored);
    self->pause_.cancel();
  });
}

void Listener::Accept() {
  if (closed_) return;
  acceptor_.async_accept(boost::asio::make_strand(*io_),
                         [self = shared_from_this()](const Error& error, Tcp::socket socket) {
                           self->OnAccepted(error, std::move(socket));
                         });
}

void Listener::OnAccepted(const Error& error, Tcp::socket socket) {
  if (closed_) return;
  if (!error) {
    try {
      Admit(std::move(socket));
    } catch (const std::exception&) {
      ++server_->counts.accept_errors;  // no memory for it: the next one may be luckier
    }
    return Accept();
  }
  ++server_->counts.accept_errors;
  pause_.expires_after(kPause);
  pause_.async_wait([self = shared_from_this()](const Error&) { self->Accept(); });
}

void Listener::Admit(Tcp::socket socket) {
  ++server_->counts.accepted;
  Error error;
  const Tcp::endpoint remote = socket.remote_endpoint(error);
  if (error) return;  // gone already
  const address from = Plain(remote.address());
  const std::string counted_as = CountedAs(from);
  const auto place = server_->table.Enter(counted_as);
  if (place != ConnectionTable::Place::kServed) ++server_->counts.refused;
  if (place == ConnectionTable::Place::kNone) return;
  auto connection =
      std::make_shared<Connection>(std::move(socket), from.to_string(), counted_as, place, server_);
  if (server_->table.Add(connection)) return connection->Start();
  server_->table.Leave(connection.get(), counted_as, place);
}

}  // namespace trine::server
