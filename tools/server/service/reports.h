// What the server tells of itself and of the tiers: to monitors, to people, to the page.
#ifndef TRINE_TOOLS_SERVER_SERVICE_REPORTS_H_
#define TRINE_TOOLS_SERVER_SERVICE_REPORTS_H_

#include <chrono>
#include <string>

#include "runtime/block_keeper.h"
#include "tools/server/http/http_counters.h"
#include "tools/server/service/job_queue.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/served_model.h"
#include "tools/server/service/session_shelf.h"

namespace trine::server {

enum class ServerState { kLoading, kServing, kStopping };

// All that reports are made of, at one moment.
struct ReportSource {
  ServerState state = ServerState::kLoading;
  double load_progress = 0;
  std::chrono::steady_clock::time_point started;
  const ServedModel* model = nullptr;  // null while it is loaded
  JobQueueCounters queue;
  HttpCounters http;
  const Metrics* metrics = nullptr;
  SessionCounters sessions;
};

// ok, degraded (without devices that were lost, or while the model is placed anew), lost (no device
// is left), loading, stopping.
std::string StateOf(const ReportSource& source);

// GET /health; `http_status` is 503 for whoever should send its requests elsewhere.
std::string HealthJson(const ReportSource& source, int* http_status);
// GET /v1/status: for the page.
std::string StatusJson(const ReportSource& source);
// Blocks that are kept beyond the cache.
void AppendKeeperMetrics(const BlockKeeperCounters& counters, std::string* out);
// GET /metrics.
std::string MetricsText(const ReportSource& source);
// GET /v1/plan: how the model was placed and why, and where it is now.
std::string PlanJson(const ServedModel& model);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_REPORTS_H_
