#include "tools/server/http/http_server.h"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/server/http/connection.h"
#include "tools/server/http/listener.h"
#include "tools/server/http/server_context.h"

namespace trine::server {
namespace {

// A handler that throws leaves its own connection behind and no other: the rest goes on.
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
  Listener::Tcp::endpoint endpoint;
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
  // Nothing is cut short: the threads end when all of that is closed and nothing is left to do.
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
