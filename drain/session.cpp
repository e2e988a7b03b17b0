#include "drain/session.hpp"

#include <fmt/format.h>

namespace haulout::drain {

bool is_connection_failure(const Error& error) {
  if (error.code() != Errc::status) return error.code() != Errc::invalid;
  return k8s::is_forbidden(error) || k8s::is_unauthorized(error) || !error.peer->structured;
}

bool Ending::end(Outcome outcome, std::string message, std::optional<Error> error) {
  outcome_ = outcome;
  message_ = std::move(message);
  at_ = clock_.wall_now();
  error_ = std::move(error);
  connection_failed_ = false;
  return false;
}

bool Ending::fail(const Error& error, std::string_view what) {
  end(Outcome::failed, fmt::format("{}: {}", what, error.message()), error);
  connection_failed_ = is_connection_failure(error);
  return false;
}

bool Ending::give_up(const Error& error, std::string_view what) {
  if (!k8s::may_heal(error)) return fail(error, what);
  return end(Outcome::blocked, fmt::format("the deadline passed: {}: {}", what, error.message()));
}

bool Ending::lacks_right(const std::string& node, const k8s::ResourceAttributes& right, std::string_view what) {
  const std::string resource = right.subresource.empty() ? right.resource : right.resource + "/" + right.subresource;
  const std::string where = right.ns.empty() ? std::string() : " in namespace " + right.ns;
  Error error(Errc::status, fmt::format("not permitted to {}{}: grant verb {} on resource {} (API group \"{}\")", what,
                                        where, right.verb, resource, right.group));
  error.peer = PeerStatus{403, "Forbidden", resource, {}, {}, {}, {}, true};
  return fail(error, "node " + node);
}

void Ending::write_to(Report& report) const {
  report.outcome = outcome_.value_or(Outcome::cancelled);
  report.message = outcome_ ? message_ : "stopped before the end";
  report.finished_at = outcome_ ? at_ : clock_.wall_now();
  report.error = error_;
  report.connection_failed = connection_failed_;
}

Session::Session(k8s::Client& client, Rng& rng, DrainObserver& observer, Options options, std::string node)
    : client_(client),
      rng_(rng),
      observer_(observer),
      options_(std::move(options)),
      node_name_(std::move(node)),
      started_at_(client.clock().wall_now()),
      ending_(client.clock()) {}

void Session::start_time() {
  started_at_ = wall_now();
  deadline_ = options_.timeout ? saturating_add(now(), *options_.timeout) : TimePoint::max();
}

void Session::send(Event event) {
  event.progress = progress_ ? progress_() : Progress();
  observer_.on_event(event);
}

void Session::emit(EventType type, std::string message) {
  send({type, wall_now(), node_name_, nullptr, nullptr, std::move(message), {}, nullptr});
}

void Session::emit(EventType type, const PodReport& pod, std::string message) {
  send({type, wall_now(), node_name_, &pod, nullptr, std::move(message), {}, nullptr});
}

void Session::emit(EventType type, const Diagnosis& diagnosis) {
  send({type, wall_now(), node_name_, nullptr, &diagnosis, {}, {}, nullptr});
}

void Session::emit(EventType type, const VolumeReport& volume) {
  send({type, wall_now(), node_name_, nullptr, nullptr, {}, {}, &volume});
}

void Trouble::tell(const std::string& why) {
  if (session_.now() < since_ + worth_a_word) return;
  std::string message = fmt::format("{}: {}", what_, why);
  if (message == told_) return;
  session_.emit(EventType::disconnected, message);
  told_ = std::move(message);
}

void Trouble::over() const {
  if (!told_.empty()) session_.emit(EventType::reconnected);
}

}  // namespace haulout::drain
