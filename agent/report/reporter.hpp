// Reports what the agent does, and keeps the data of its metrics: whether the API server is available, the counts of a
// running drain, and the answers of the agent's ports.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/node/node_status.hpp"
#include "agent/ports/backend.hpp"
#include "agent/ports/slots.hpp"
#include "agent/process/logging.hpp"
#include "agent/process/transports.hpp"
#include "agent/report/event_queue.hpp"
#include "agent/report/metrics.hpp"
#include "agent/report/status_pages.hpp"
#include "drain/observer.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

// Decides whether the API server is available, from the responses to the agent's ordinary requests. It counts as
// unavailable before the first request, and if `patience` has passed since the first unanswered request and none was
// answered after that. Pure.
class ApiHealth {
 public:
  // Longer than the effect of one broken connection, which does not mean that the server is unavailable.
  static constexpr Duration patience = std::chrono::seconds(30);

  // `answered` is true if the API server answered a request.
  void see(bool answered, TimePoint now) {
    seen_ = true;
    if (answered) {
      silent_since_.reset();
    } else if (!silent_since_) {
      silent_since_ = now;
    }
  }
  bool up(TimePoint now) const { return seen_ && (!silent_since_ || now - *silent_since_ < patience); }

 private:
  bool seen_ = false;
  std::optional<TimePoint> silent_since_;
};

// Counts the pods that a running drain waits for, and its diagnoses, from its events. No I/O.
class DrainTally {
 public:
  void see(const drain::Event& event);
  // Resets the counts; called when the drain has ended.
  void clear();

  const drain::Progress& progress() const { return progress_; }
  std::map<std::string, std::size_t> waiting_by_reason() const;
  std::map<std::string, std::size_t> diagnoses_by_code() const;

 private:
  drain::Progress progress_;
  std::map<std::string, std::string> waiting_;  // waiting pods: UID to reason
  std::set<std::pair<std::string, std::string>> diagnoses_;
};

// Decorators that report the answers of the agent's ports to a function. Each borrows the port that it decorates, and
// is cancellable as the port is.
class ObservedBackend final : public Backend {
 public:
  ObservedBackend(Backend& inner, std::function<void(const Pending&)> tell) : inner_(inner), tell_(std::move(tell)) {}

  std::string name() const override { return inner_.name(); }
  bool versions_are_shared() const override { return inner_.versions_are_shared(); }
  boost::asio::awaitable<Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override { return inner_.booted(deadline); }
  Task<> apply(std::string target, TimePoint deadline) override { return inner_.apply(std::move(target), deadline); }
  boost::asio::awaitable<void> changed() override { return inner_.changed(); }

 private:
  Backend& inner_;
  std::function<void(const Pending&)> tell_;
};

class ObservedSlots final : public Slots {
 public:
  // Calls `tell` after each answer that shows whether this node holds the slot.
  ObservedSlots(Slots& inner, std::function<void(bool)> tell) : inner_(inner), tell_(std::move(tell)) {}

  std::string name() const override { return inner_.name(); }
  void remember(const std::string& slot) override { inner_.remember(slot); }
  void aim_at(const std::string& version) override { inner_.aim_at(version); }
  Task<Turn> take(TimePoint deadline) override;
  Task<Turn> confirm(TimePoint deadline) override;
  Task<> release(TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override { return inner_.changed(); }

 private:
  Slots& inner_;
  std::function<void(bool)> tell_;
};

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

// Reports what the agent does: makes log lines, Events on the Node, metrics and messages for the service manager, all
// from the same status or drain event.
//
// Callers are the agent (AgentParts::tell and warn), drains (it is their observer) and the decorators above. Calls
// never block and never fail. run() writes the Events until it is cancelled. Borrows client and rng, and must outlive
// run() and all callers. Whatever the functions capture must outlive it. One thread.
class Reporter final : public drain::DrainObserver {
 public:
  Reporter(ReporterParts parts, ReporterOptions options);

  void tell(const Status& status);
  // Implements AgentParts::warn: reports a warning, without changing the current status.
  void warn(const Status& status);
  void on_event(const drain::Event& event) override;
  void see_pending(const Pending& pending);
  void see_turn(bool ours) { metrics_.show_slot(ours); }
  void see_request(const RequestEnd& request);
  // `pool` is the pool of the node; empty if it is in none.
  void see_record(const std::string& pool, const Record& record);
  void see_authority(const std::string& authority) { metrics_.show_authority(authority); }

  // Sends READY=1 first, because the agent is set up even if the API server does not answer; then writes the Events.
  boost::asio::awaitable<void> run();
  // Sends STOPPING=1; called after a signal has ended the agent.
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
