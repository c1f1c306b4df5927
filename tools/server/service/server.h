// The server of `trine serve`: an HTTP server, a queue of jobs, and a model. The server answers
// while it loads the model. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/server/http/http_server.h"
#include "tools/server/service/access.h"
#include "tools/server/service/api.h"
#include "tools/server/service/heap_trimmer.h"
#include "tools/server/service/job_desk.h"
#include "tools/server/service/job_queue.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/reports.h"
#include "tools/server/service/served_model.h"
#include "tools/server/service/server_log.h"
#include "tools/server/service/session_shelf.h"

namespace trine::server {

// Loads the model. Calls `progress` with the fraction that is done, and stops if it returns false.
using ModelLoader = std::function<absl::StatusOr<std::unique_ptr<ServedModel>>(
    const std::function<bool(double)>& progress)>;

struct ServerOptions {
  HttpServerOptions http;
  AccessOptions access;
  JobQueueOptions queue;
  std::chrono::seconds request_time{600};
  SessionLimits sessions;
  bool serve_page = true;
  ModelLoader load;
};

class Server {
 public:
  // Starts a server. It listens when Start returns; a thread loads the model. `log` must outlive
  // the server.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options, ServerLog* log);
  // Calls Shutdown with no patience.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const { return http_->port(); }
  std::string address() const { return http_->address(); }

  // Returns why the model can't be loaded. OK while it is being loaded, and after it was loaded.
  absl::Status load_status() const;
  bool loaded() const { return Model() != nullptr; }
  std::shared_ptr<const ServedModel> Model() const;  // null: no model is loaded

  // Stops the server. Gives the requests that it has up to `patience` to end. During this time new
  // requests are answered 503, and /health says "stopping". Then cancels the requests that are left
  // and tells their clients. Both waits end early if `hurry` returns true.
  void Shutdown(std::chrono::milliseconds patience, const std::function<bool()>& hurry = {});

 private:
  struct Route;

  Server(ServerOptions options, ServerLog* log);
  void Load();
  void Handle(std::shared_ptr<Exchange> exchange);
  void Tick();  // called twice a second
  std::optional<HttpRefusal> RefuseHead(const HttpRequest& head) const;
  bool ServePage(Reply* reply) const;
  const Route* FindRoute(const HttpRequest& request, std::string* allowed) const;

  // The handlers of routes.
  template <auto kMethod>
  static void OfApi(Server* server, Api::Call call);
  template <auto kMethod>
  static void OfSessions(Server* server, Api::Call call);
  template <auto kMethod>
  static void Own(Server* server, Api::Call call);
  void GetHealth(Reply* reply);
  void GetStatus(Reply* reply);
  void GetMetrics(Reply* reply);
  ReportSource Source() const;

  const ServerOptions options_;
  const Access access_;
  ServerLog* const log_;
  Metrics metrics_;
  SessionShelf shelf_;
  HeapTrimmer heap_;
  JobDesk desk_;
  Api api_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::atomic<ServerState> state_ = ServerState::kLoading;
  std::atomic<double> load_progress_ = 0;
  std::atomic<bool> stopping_ = false;

  mutable std::mutex mutex_;
  std::shared_ptr<const ServedModel> model_;  // guarded by mutex_
  absl::Status load_status_;                  // guarded by mutex_

  std::thread loader_;
  std::unique_ptr<HttpServer> http_;
  std::atomic<HttpServer*> listening_ = nullptr;  // http_, once it listens
};

}  // namespace trine::server
