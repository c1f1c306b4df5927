// Makes the reports about the server and the segments of its model, which the reports call tiers.
// They are for monitors, people and the web page.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/kv/block_keeper.h"
#include "tools/report/plan_report.h"
#include "tools/server/http/http_server.h"
#include "tools/server/service/job_queue.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/served_model.h"
#include "tools/server/service/session_shelf.h"

namespace trine::server {

enum class ServerState { kLoading, kServing, kStopping };

// The data of all reports. Counters are copies; `model` and `metrics` are read while a report is
// made. Any thread may make reports.
struct ReportSource {
  ServerState state = ServerState::kLoading;
  double load_progress = 0;                       // from 0 to 1
  std::chrono::steady_clock::time_point started;  // when the server started
  std::shared_ptr<const ServedModel> model;       // null while the model is being loaded
  JobQueueCounters queue;
  HttpCounters http;
  const Metrics* metrics = nullptr;  // HealthJson needs none
  SessionCounters sessions;
};

// Returns the first of these that holds: "stopping"; "loading"; "lost" (no device is left);
// "degraded" (the model runs without a device that failed, or is being placed again); "ok".
std::string StateOf(const ReportSource& source);

// Returns the body of GET /health. Sets *http_status to 200 in the states "ok" and "degraded", and
// to 503 otherwise, so that load balancers send clients elsewhere.
std::string HealthJson(const ReportSource& source, int* http_status);
// Returns the body of GET /v1/status, which the web page reads.
std::string StatusJson(const ReportSource& source);
// Appends the metrics of the block keeper to `out`, in the text format of Prometheus.
void AppendKeeperMetrics(const BlockKeeperCounters& counters, std::string* out);
// Returns the body of GET /metrics, in the same format.
std::string MetricsText(const ReportSource& source);
// Returns the body of GET /v1/plan: where the model is now and, if the engine kept its reasons
// (EngineOptions::explain), where the model was placed when it was loaded, and why.
std::string PlanJson(const ServedModel& model);
// Returns where the model was placed and why. REQUIRES: the engine has a plan.
PlanReport PlanReportOf(const ServedModel& model);

}  // namespace trine::server
