// Reports what the agent does. Turns each status and the events of a drain into log lines, Events on the Node, metrics
// and messages for the service manager, all from the same value.
//
// Its callers are the driver (AgentParts::tell and warn), drains (it is their observer) and the decorators of
// observed_ports.hpp. Calls never block and never fail. run() writes the Events, until cancelled. Borrows client and
// rng, and must outlive run() and all callers. What the functions capture must outlive it. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/node/node_status.hpp"
#include "agent/process/logging.hpp"
#include "agent/process/transports.hpp"
#include "agent/report/api_health.hpp"
#include "agent/report/drain_tally.hpp"
#include "agent/report/event_queue.hpp"
#include "agent/report/metrics.hpp"
#include "agent/report/observed_ports.hpp"
#include "agent/report/status_pages.hpp"
#include "drain/observer.hpp"

namespace haulout::agent {

struct LogEntry;

struct ReporterParts {
  boost::asio::any_io_executor executor;
  k8s::Client& client;  // writes Events; needs no impersonation
  Rng& rng;
  std::function<void(Severity, const std::string& message, const Log::Fields&)> log;
  // See service_manager.hpp.
  std::function<void(const std::string&)> notify;
};

struct ReporterOptions {
  std::string node{};
  std::string instance{};  // the agent's pod, or the host
  std::string version{};
};

class Reporter final : public drain::DrainObserver {
 public:
  Reporter(ReporterParts parts, ReporterOptions options);

  void tell(const Status& status);
  // AgentParts::warn: reports a warning, without changing the current status.
  void warn(const Status& status);
  void on_event(const drain::Event& event) override;
  void see_pending(const Pending& pending);
  void see_turn(bool ours) { metrics_.show_slot(ours); }
  void see_request(const RequestEnd& request);
  void see_authority(const std::string& authority) { metrics_.show_authority(authority); }

  // Sends READY=1 first: the agent is set up, even if the API server does not answer.
  boost::asio::awaitable<void> run();
  // Call it after SIGTERM; sends STOPPING=1.
  void say_goodbye();

  std::string metrics_text();
  std::vector<Check> readiness() const;

 private:
  void count_what_ended(const Status& before, const Status& now);
  void log(const LogEntry& entry);
  void show_tally();
  TimePoint now() const { return parts_.client.clock().now(); }

  ReporterParts parts_;
  ReporterOptions options_;
  Metrics metrics_;
  EventQueue events_;
  DrainTally tally_;
  ApiHealth api_;
  bool api_told_down_ = false;
  std::optional<Pending> pending_;
  std::optional<Status> status_;
};

}  // namespace haulout::agent
