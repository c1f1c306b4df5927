// Reports about the server and its tiers, for monitors, people and the web page.
#pragma once

#include <chrono>
#include <string>

#include "runtime/kv/block_keeper.h"
#include "tools/server/http/http_server.h"
#include "tools/server/service/job_queue.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/served_model.h"
#include "tools/server/service/session_shelf.h"

namespace trine::server {

enum class ServerState { kLoading, kServing, kStopping };

// The data of all reports at one moment.
struct ReportSource {
  ServerState state = ServerState::kLoading;
  double load_progress = 0;
  std::chrono::steady_clock::time_point started;
  const ServedModel* model = nullptr;  // null while it is being loaded
  JobQueueCounters queue;
  HttpCounters http;
  const Metrics* metrics = nullptr;
  SessionCounters sessions;
};

// Returns "ok", "degraded" (devices were lost, or the model is being placed again), "lost" (no
// device is left), "loading" or "stopping".
std::string StateOf(const ReportSource& source);

// Returns the body of GET /health. Sets *http_status to 503 if clients should use another server.
std::string HealthJson(const ReportSource& source, int* http_status);
// Returns the body of GET /v1/status, which the web page reads.
std::string StatusJson(const ReportSource& source);
// Appends the metrics of the block keeper.
void AppendKeeperMetrics(const BlockKeeperCounters& counters, std::string* out);
// Returns the body of GET /metrics.
std::string MetricsText(const ReportSource& source);
// Returns the body of GET /v1/plan: where the model was placed and why, and where it is now.
std::string PlanJson(const ServedModel& model);

}  // namespace trine::server
