#include "agent/report/reporter.hpp"

#include "agent/report/status_words.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {

void DrainTally::see(const drain::Event& event) {
  using enum drain::EventType;
  if (event.type == planned) clear();
  progress_ = event.progress;
  if (event.pod && event.type == parked) waiting_[event.pod->uid] = event.pod->reason;
  if (event.pod && (event.type == evicted || event.type == vanished || event.type == terminating || event.type == left))
    waiting_.erase(event.pod->uid);
  if (event.diagnosis && event.type == diagnosis_raised)
    diagnoses_.emplace(event.diagnosis->code, event.diagnosis->subject);
  if (event.diagnosis && event.type == diagnosis_withdrawn)
    diagnoses_.erase({event.diagnosis->code, event.diagnosis->subject});
}

void DrainTally::clear() {
  progress_ = {};
  waiting_.clear();
  diagnoses_.clear();
}

std::map<std::string, std::size_t> DrainTally::waiting_by_reason() const {
  std::map<std::string, std::size_t> counts;
  for (const auto& [uid, reason] : waiting_) ++counts[reason];
  return counts;
}

std::map<std::string, std::size_t> DrainTally::diagnoses_by_code() const {
  std::map<std::string, std::size_t> counts;
  for (const auto& [code, subject] : diagnoses_) ++counts[code];
  return counts;
}

boost::asio::awaitable<Pending> ObservedBackend::pending(TimePoint deadline) {
  Pending pending = co_await inner_.pending(deadline);
  tell_(pending);
  co_return pending;
}

Task<Turn> ObservedSlots::take(TimePoint deadline) {
  auto turn = co_await inner_.take(deadline);
  if (turn) tell_(turn->ours);
  co_return turn;
}

Task<Turn> ObservedSlots::confirm(TimePoint deadline) {
  auto turn = co_await inner_.confirm(deadline);
  if (turn) tell_(turn->ours);
  co_return turn;
}

Task<> ObservedSlots::release(TimePoint deadline) {
  auto released = co_await inner_.release(deadline);
  if (released) tell_(false);
  co_return released;
}

namespace asio = boost::asio;

namespace {

// Returns true if the metrics still show the last drain in this state. In all other states they are reset.
bool shows_drain(State state) {
  return state == State::draining || state == State::updating || state == State::ready || state == State::rebooting;
}

// Returns true if the API server itself answered. A gateway error (502, 503, 504) comes from a gateway in front of it.
bool answered(const RequestEnd& request) {
  return request.status != 0 && request.status != 502 && request.status != 503 && request.status != 504;
}

std::string_view result_of_eviction(const RequestEnd& request) {
  if (request.status == 0) return "unanswered";
  return request.status < 300 ? "accepted" : "refused";
}

}  // namespace

Reporter::Reporter(ReporterParts parts, ReporterOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      metrics_({options_.node, options_.version}),
      events_(parts_.executor, parts_.client, parts_.rng, {.node = options_.node, .instance = options_.instance},
              [this](EventResult result) { metrics_.count_event(to_string(result)); }) {}

void Reporter::log(const LogEntry& entry) {
  parts_.log(entry.severity, entry.message, entry.fields);
}

void Reporter::tell(const Status& status) {
  if (status_ && *status_ == status) return;
  const std::optional<Status> before = std::exchange(status_, status);
  metrics_.show(status);
  log(log_entry_of(before, status));
  parts_.notify("STATUS=" + printable(line_of(status)));
  if (!shows_drain(status.state)) {
    tally_.clear();
    show_tally();
  }
  // When a new agent process starts, the Node already shows the first status, so no Event is needed.
  if (!before) return;
  count_what_ended(*before, status);
  if (auto event = event_of(*before, status)) events_.push(*std::move(event));
}

void Reporter::warn(const Status& status) {
  log(warning_entry_of(status));
  events_.push(warning_event_of(status));
}

void Reporter::count_what_ended(const Status& before, const Status& now) {
  if (before.state == now.state) return;
  if (before.state == State::draining && before.since != WallTime() && now.since > before.since)
    metrics_.drain_ended(now.state == State::ready || now.state == State::updating, now.since - before.since);
  if (before.state == State::verifying && now.state == State::uncordoning && !before.judged)
    metrics_.update_ended(now.reason == reason::rebooted_meanwhile ? "given_up" : "succeeded");
  if ((before.state == State::verifying || before.state == State::rebooting || before.state == State::updating) &&
      now.state == State::degraded && !before.judged)
    metrics_.update_ended("failed");
  if (shows_drain(before.state) && now.state == State::pending) metrics_.update_ended("given_up");
}

void Reporter::on_event(const drain::Event& event) {
  tally_.see(event);
  show_tally();
  if (const auto entry = log_entry_of(event)) log(*entry);
  if (auto note = event_of(event)) events_.push(*std::move(note));
}

void Reporter::show_tally() {
  metrics_.show_drain(tally_.progress());
  metrics_.show_waiting_pods(tally_.waiting_by_reason());
  metrics_.show_diagnoses(tally_.diagnoses_by_code());
}

void Reporter::see_pending(const Pending& pending) {
  pending_ = pending;
  metrics_.show_need(pending.need);
}

void Reporter::see_record(const std::string& pool, const Record& record) {
  metrics_.show_pool(pool);
  metrics_.show_record(record);
}

void Reporter::see_request(const RequestEnd& request) {
  const RequestInfo info = describe_request(request.method, request.target);
  const std::string resource = info.subresource.empty() ? info.resource : info.resource + "/" + info.subresource;
  metrics_.count_request(
      info.verb, resource,
      request.status != 0 ? std::to_string(request.status) : std::string(to_string(request.failure)));
  if (resource == "pods/eviction") metrics_.count_eviction(result_of_eviction(request));
  api_.see(answered(request), now());
  const bool down = !api_.up(now());
  if (down == api_told_down_) return;
  api_told_down_ = down;
  log({down ? Severity::warning : Severity::notice,
       down ? "the API server does not answer; the agent goes on when it does" : "the API server answers again",
       {}});
}

asio::awaitable<void> Reporter::run() {
  parts_.notify("READY=1");
  co_await events_.run();
}

void Reporter::say_goodbye() {
  parts_.notify("STOPPING=1");
}

std::string Reporter::metrics_text() {
  metrics_.show_api(api_.up(now()));
  if (const auto figures = read_process_figures()) metrics_.show_process(*figures);
  return metrics_.text();
}

std::vector<Check> Reporter::readiness() const {
  Check api{"api", api_.up(now()) ? "" : "the API server does not answer"};
  Check backend{"backend", pending_ ? "" : "the back end has not answered yet"};
  // A back end may be unable to answer for days. That must not make the pod unready, because an unready pod would stop
  // the rollout of a new agent version, or of a fix, to other nodes.
  if (pending_ && pending_->need == Need::unknown)
    backend.note = pending_->problem.empty() ? "no answer" : pending_->problem;
  return {std::move(api), std::move(backend)};
}

}  // namespace haulout::agent
