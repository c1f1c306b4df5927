#include "tools/server/http/http_server.h"

#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/server/http/connection.h"

namespace trine::server {
namespace {

using boost::asio::ip::address;
using Error = boost::system::error_code;
using Tcp = boost::asio::ip::tcp;

// The pause after an accept that failed: resources are rarely free again at once.
constexpr std::chrono::milliseconds kPause{100};

absl::Status CannotListen(const HttpServerOptions& options, const Error& error) {
  const std::string what =
      absl::StrCat("can't listen on ", options.host, " port ", options.port, ": ", error.message());
  if (error == boost::asio::error::address_in_use) return absl::AlreadyExistsError(what);
  if (error == boost::asio::error::access_denied) return absl::PermissionDeniedError(what);
  return absl::InvalidArgumentError(what);
}

// Returns the IPv4 address of a client that a socket for both protocols shows as IPv6.
address Plain(const address& from) {
  if (!from.is_v6() || !from.to_v6().is_v4_mapped()) return from;
  return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, from.to_v6());
}

// A host that has one IPv6 address usually has 64 bits of them.
std::string CountedAs(const address& from) {
  if (!from.is_v6()) return from.to_string();
  const auto bytes = from.to_v6().to_bytes();
  return {reinterpret_cast<const char*>(bytes.data()), 8};
}

absl::StatusOr<std::vector<Tcp::endpoint>> Resolve(boost::asio::io_context* io,
                                                   const HttpServerOptions& options) {
  std::string host = options.host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  Error error;
  if (host.empty()) return CannotListen(options, boost::asio::error::host_not_found);
  Tcp::resolver resolver(*io);
  const auto found = resolver.resolve(
      host, std::to_string(options.port),
      boost::asio::ip::resolver_base::passive | boost::asio::ip::resolver_base::numeric_service,
      error);
  if (error) return CannotListen(options, error);
  std::vector<Tcp::endpoint> endpoints;
  for (const auto& entry : found) {
    if (std::find(endpoints.begin(), endpoints.end(), entry.endpoint()) == endpoints.end()) {
      endpoints.push_back(entry.endpoint());
    }
  }
  return endpoints;
}

// A listening socket with the loop that accepts connections from it. Goes on after failed accepts,
// until it is closed.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  // Opens a listener for each address of the host in the options, all with the same port. Skips
  // addresses that this machine does not have, if it has at least one.
  static absl::StatusOr<std::vector<std::shared_ptr<Listener>>> Open(boost::asio::io_context* io,
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

  Listener(boost::asio::io_context* io, ServerContext* server)
      : io_(io),
        server_(server),
        acceptor_(boost::asio::make_strand(*io)),
        pause_(acceptor_.get_executor()) {}

  void Start() {
    boost::asio::post(acceptor_.get_executor(), [self = shared_from_this()] { self->Accept(); });
  }

  // When it returns, the system refuses new connections. Any thread may call it, any number of
  // times.
  void Close() {
    if (closed_.exchange(true)) return;
    // The strand, which may be busy, closes the descriptor. Nothing else does, so it is still valid
    // here.
    shutdown(acceptor_.native_handle(), SHUT_RDWR);
    boost::asio::post(acceptor_.get_executor(), [self = shared_from_this()] {
      Error ignored;
      self->acceptor_.close(ignored);
      self->pause_.cancel();
    });
  }

  const Tcp::endpoint& endpoint() const { return endpoint_; }

 private:
  Error Bind(const Tcp::endpoint& endpoint) {
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

  void Accept() {
    if (closed_) return;
    acceptor_.async_accept(boost::asio::make_strand(*io_),
                           [self = shared_from_this()](const Error& error, Tcp::socket socket) {
                             self->OnAccepted(error, std::move(socket));
                           });
  }

  void OnAccepted(const Error& error, Tcp::socket socket) {
    if (closed_) return;
    if (!error) {
      try {
        Admit(std::move(socket));
      } catch (const std::exception&) {
        ++server_->counts.accept_errors;  // no memory for this connection; the next may fit
      }
      return Accept();
    }
    ++server_->counts.accept_errors;
    pause_.expires_after(kPause);
    pause_.async_wait([self = shared_from_this()](const Error&) { self->Accept(); });
  }

  void Admit(Tcp::socket socket) {
    ++server_->counts.accepted;
    Error error;
    const Tcp::endpoint remote = socket.remote_endpoint(error);
    if (error) return;  // the client has gone already
    const address from = Plain(remote.address());
    const std::string counted_as = CountedAs(from);
    const auto place = server_->table.Enter(counted_as);
    if (place != ConnectionTable::Place::kServed) ++server_->counts.refused;
    if (place == ConnectionTable::Place::kNone) return;
    auto connection = std::make_shared<Connection>(std::move(socket), from.to_string(), counted_as,
                                                   place, server_);
    if (server_->table.Add(connection)) return connection->Start();
    server_->table.Leave(connection.get(), counted_as, place);
  }

  boost::asio::io_context* const io_;
  ServerContext* const server_;
  Tcp::acceptor acceptor_;  // on a strand
  boost::asio::steady_timer pause_;
  Tcp::endpoint endpoint_;
  std::atomic<bool> closed_ = false;
};

// An exception ends only the connection that it came from: the thread goes on.
void Run(boost::asio::io_context* io) {
  for (;;) {
    try {
      io->run();
      return;
    } catch (const std::exception&) {
    }
  }
}

}  // namespace

struct HttpServer::Impl {
  Impl(HttpServerOptions options, HttpHandler handler)
      : context(std::move(options), std::move(handler)), work(io.get_executor()) {}

  absl::Status Start();

  ServerContext context;
  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::vector<std::shared_ptr<Listener>> listeners;
  Tcp::endpoint endpoint;
  std::mutex stopping;
  std::vector<std::thread> threads;
};

absl::Status HttpServer::Impl::Start() {
  auto opened = Listener::Open(&io, &context);
  if (!opened.ok()) return opened.status();
  listeners = *std::move(opened);
  endpoint = listeners.front()->endpoint();
  for (int i = 0; i < std::max(1, context.options.threads); ++i) {
    threads.emplace_back([this] { Run(&io); });
    pthread_setname_np(threads.back().native_handle(), absl::StrCat("trine-http-", i).c_str());
  }
  for (const auto& listener : listeners) listener->Start();
  return absl::OkStatus();
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { Stop(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options,
                                                              HttpHandler handler) {
  const std::string where = absl::StrCat(options.host, " port ", options.port);
  try {
    std::unique_ptr<HttpServer> server(
        new HttpServer(std::make_unique<Impl>(std::move(options), std::move(handler))));
    if (absl::Status status = server->impl_->Start(); !status.ok()) return status;
    return server;
  } catch (const std::exception& e) {
    return absl::ResourceExhaustedError(absl::StrCat("can't serve on ", where, ": ", e.what()));
  }
}

uint16_t HttpServer::port() const { return impl_->endpoint.port(); }

std::string HttpServer::address() const {
  const auto address = impl_->endpoint.address();
  const std::string host = address.to_string();
  return absl::StrCat(address.is_v6() ? "[" + host + "]" : host, ":", port());
}

void HttpServer::StopAccepting() {
  for (const auto& listener : impl_->listeners) listener->Close();
  for (const auto& connection : impl_->context.table.Close()) connection->CloseWhenIdle();
}

bool HttpServer::Drain(std::chrono::milliseconds limit) {
  return impl_->context.table.WaitUntilIdle(limit);
}

void HttpServer::Stop() {
  std::lock_guard lock(impl_->stopping);
  if (impl_->threads.empty()) return;
  for (const auto& listener : impl_->listeners) listener->Close();
  for (const auto& connection : impl_->context.table.Close()) connection->CloseNow();
  // Cancels nothing: the threads end when all connections are closed and no work is left.
  impl_->work.reset();
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

HttpCounters HttpServer::counters() const {
  const auto& counts = impl_->context.counts;
  return {.open = impl_->context.table.served(),
          .accepted = counts.accepted,
          .refused = counts.refused,
          .accept_errors = counts.accept_errors,
          .requests = counts.requests,
          .bad_requests = counts.bad_requests,
          .timeouts = counts.timeouts,
          .gone = counts.gone,
          .bytes_in = counts.bytes_in,
          .bytes_out = counts.bytes_out};
}

}  // namespace trine::server
