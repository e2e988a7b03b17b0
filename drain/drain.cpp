#include "drain/drain.hpp"

#include <fmt/format.h>

#include "drain/drain_impl.hpp"
#include "drain/insist.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// Returns true if the failure does not result from the state of the cluster: credentials, network, permissions, or an
// endpoint that is no API server.
bool is_connection_failure(const Error& error) {
  if (error.code() != Errc::status) return error.code() != Errc::invalid;
  return k8s::is_forbidden(error) || k8s::is_unauthorized(error) || !error.peer->structured;
}

Task<CordonChange> noting_loss(Task<CordonChange> attempt, bool& lost) {
  auto change = co_await std::move(attempt);
  if (!change && k8s::is_transient(change.error())) lost = true;
  co_return change;
}

}  // namespace

Drain::Drain(k8s::Client& client, Rng& rng, DrainObserver& observer, Options options, std::string node)
    : impl_(std::make_unique<Impl>(client, rng, observer, std::move(options), std::move(node))) {}
Drain::~Drain() = default;

void Drain::expect_leaked(std::set<std::string> uids) {
  impl_->expect_leaked(std::move(uids));
}
const std::set<std::string>& Drain::leaked() const {
  return impl_->leaked();
}
asio::awaitable<bool> Drain::preflight() {
  co_return impl_->tell_unless(co_await impl_->preflight());
}
asio::awaitable<bool> Drain::cordon() {
  co_return impl_->tell_unless(co_await impl_->cordon(true));
}
asio::awaitable<bool> Drain::evict() {
  return impl_->evict(true);
}
std::vector<Diagnosis> Drain::diagnoses() const {
  return impl_->diagnoses();
}
Report Drain::report() const {
  return impl_->report();
}

asio::awaitable<Report> Drain::run() {
  if (co_await preflight() && impl_->tell_unless(co_await impl_->cordon(false))) (void)co_await impl_->evict(false);
  co_return impl_->report();
}

Drain::Impl::Impl(k8s::Client& client, Rng& rng, DrainObserver& observer, Options options, std::string node)
    : client_(client),
      clock_(client.clock()),
      rng_(rng),
      observer_(observer),
      options_(std::move(options)),
      node_name_(std::move(node)),
      controllers_(options_.guards),
      volumes_(
          node_name_, options_.volume_limit,
          [this](EventType type, const VolumeReport& volume) { emit(type, nullptr, nullptr, {}, &volume); },
          options_.reattach_limit),
      turns_(volumes_) {
  report_.node = node_name_;
  report_.started_at = clock_.wall_now();
  node_facts_.name = node_name_;
  node_facts_.own_uid = options_.own_pod_uid;
  PipelineOptions pipeline;
  pipeline.max_places = options_.max_concurrent;
  pipeline.respect_budgets = !options_.delete_instead_of_evict;
  pipeline.grace_seconds = options_.grace_seconds;
  pipeline.own_uid = options_.own_pod_uid;
  pipeline.order = options_.order;
  pipeline.leaves_pinned = options_.policy.pinned == Treatment::skip;
  pipeline.pinned_controllers = options_.pinned_controllers;
  pipeline.skips_overdue = options_.policy.skip_terminating_after.has_value();
  if (options_.guards.any()) pipeline.guards.push_back(&controllers_);
  if (options_.volume_turns != VolumeWait::off) pipeline.guards.push_back(&turns_);
  pipeline_.emplace(
      pipeline, rng_,
      [this](const k8s::Pod& pod) {
        return controllers_.judge(decide(pod, options_.policy, daemon_sets_, client_.server_now()), pod);
      },
      [this](EventType type, const PodReport& pod) {
        if (type == EventType::late_pod) ++late_pods_;
        emit(type, &pod, nullptr, type == EventType::throttled ? pipeline_->throttle_message() : std::string());
      },
      [this] { return client_.server_now(); });
}

void Drain::Impl::start_time() {
  report_.started_at = clock_.wall_now();
  deadline_ = options_.timeout ? saturating_add(now(), *options_.timeout) : TimePoint::max();
  volumes_.end_reattaching_at(options_.timeout ? deadline_ - reattach_margin : TimePoint::max());
}

k8s::DryRun Drain::Impl::wire_dry_run() const {
  return options_.dry_run == DryRunMode::server ? k8s::DryRun::server : k8s::DryRun::none;
}

Task<> Drain::Impl::request_removal(std::string uid, std::string ns, std::string name) {
  k8s::DeleteOptions options;
  options.uid = std::move(uid);
  options.grace_seconds = options_.grace_seconds;
  options.write.dry_run = wire_dry_run();
  const TimePoint limit = within(evict_timeout);
  if (options_.delete_instead_of_evict) co_return co_await client_.remove<k8s::Pod>(ns, name, options, limit);
  co_return co_await client_.evict(ns, name, options, limit);
}

void Drain::Impl::emit(EventType type, const PodReport* pod, const Diagnosis* diagnosis, std::string message,
                       const VolumeReport* volume) {
  Event event{type, clock_.wall_now(), node_name_, pod, diagnosis, std::move(message), {}, volume};
  if (pipeline_) event.progress = pipeline_->progress();
  event.progress.detaching = volumes_.count(VolumeOutcome::detaching);
  if (waits_for_volumes()) event.progress.unclear = volumes_.count(VolumeOutcome::unclear);
  observer_.on_event(event);
}

void Drain::Impl::Trouble::tell(const std::string& why) {
  if (drain_.now() < since_ + worth_a_word) return;
  std::string message = fmt::format("{}: {}", what_, why);
  if (message == told_) return;
  drain_.emit(EventType::disconnected, nullptr, nullptr, message);
  told_ = std::move(message);
}

void Drain::Impl::Trouble::over() const {
  if (!told_.empty()) drain_.emit(EventType::reconnected);
}

bool Drain::Impl::end(Outcome outcome, std::string message) {
  ended_ = true;
  report_.outcome = outcome;
  report_.message = std::move(message);
  report_.finished_at = clock_.wall_now();
  return false;
}

bool Drain::Impl::fail(const Error& error, std::string_view what) {
  report_.error = error;
  report_.connection_failed = is_connection_failure(error);
  return end(Outcome::failed, fmt::format("{}: {}", what, error.message()));
}

// Ends the drain after a request failed for good. If waiting might have resolved the failure, only the deadline stopped
// the retries, and the outcome is `blocked`. Otherwise it is `failed`.
bool Drain::Impl::give_up(const Error& error, std::string_view what) {
  if (!may_heal(error)) return fail(error, what);
  return end(Outcome::blocked, fmt::format("the deadline passed: {}: {}", what, error.message()));
}

bool Drain::Impl::tell_unless(bool goes_on) {
  if (!goes_on) emit(EventType::finished, nullptr, nullptr, report_.message);
  return goes_on;
}

Report Drain::Impl::report() const {
  Report report = report_;
  if (!ended_) {
    report.outcome = Outcome::cancelled;
    report.message = "stopped before the end";
    report.finished_at = clock_.wall_now();
  }
  report.cordon.known = !changes_cordon_;
  report.pods = pipeline_->reports();
  report.volumes = volumes_.reports();
  report.diagnoses = board_.active();
  return report;
}

asio::awaitable<bool> Drain::Impl::cordon(bool own_time) {
  if (own_time) start_time();
  if (options_.dry_run == DryRunMode::client) {
    emit(EventType::cordoned, nullptr, nullptr, "dry run: not sent");
    co_return true;
  }
  const CordonMark mark{options_.run_id, options_.cordoned_by, client_.server_now()};
  const std::string what = "node " + node_name_ + " could not be cordoned";
  changes_cordon_ = !node_.unschedulable && options_.dry_run == DryRunMode::none;
  auto change = co_await change_cordon(what, [&](TimePoint deadline) {
    return drain::cordon(client_, rng_, node_name_, node_.uid, mark, wire_dry_run(), deadline);
  });
  if (!change) {
    if (k8s::is_gone(change.error())) {
      changes_cordon_ = false;
      co_return end(Outcome::node_gone, "the Node was deleted before it was cordoned");
    }
    give_up(change.error(), what);
    if (changes_cordon_) co_await undo_unanswered_cordon();
    co_return false;
  }
  if (change->before.uid != node_.uid)
    co_return end(Outcome::node_gone, "the Node was replaced by another of the same name before it was cordoned");
  // If the response to the patch was lost, the next try finds the node already cordoned by this run.
  const auto found = mark_of(change->before);
  const bool by_lost_patch = change->before.unschedulable && !node_.unschedulable && found &&
                             found->run == options_.run_id && cordon_owner(change->before) == CordonOwner::haulout;
  cordoned_by_us_ = (change->changed || by_lost_patch) && options_.dry_run == DryRunMode::none;
  cordoned_at_ = now();
  node_ = change->after;
  report_.cordon.before = change->before.unschedulable && !by_lost_patch;
  if (options_.dry_run == DryRunMode::none) show_cordon(node_);
  node_facts_.expect_cordon = options_.dry_run == DryRunMode::none;
  node_facts_.unschedulable = report_.cordon.after;
  emit(EventType::cordoned, nullptr, nullptr, change->changed ? "" : "already cordoned");
  co_return true;
}

Task<CordonChange> Drain::Impl::change_cordon(std::string what, std::function<Task<CordonChange>(TimePoint)> attempt) {
  bool lost = false;
  auto change = co_await insist<CordonChange>(
      std::move(what),
      [&lost, attempt = std::move(attempt)](TimePoint deadline) { return noting_loss(attempt(deadline), lost); },
      request_timeout);
  changes_cordon_ = changes_cordon_ && !change && lost;
  co_return change;
}

void Drain::Impl::show_cordon(const k8s::Node& node) {
  report_.cordon.after = node.unschedulable;
  report_.cordon.owner = !node.unschedulable ? "" : cordon_owner(node) == CordonOwner::haulout ? "haulout" : "other";
}

// The patch whose response never came may have taken effect. If so, the cordon is taken back.
asio::awaitable<void> Drain::Impl::undo_unanswered_cordon() {
  deadline_ = saturating_add(now(), request_timeout);
  auto node = co_await insist<k8s::Node>(
      "whether node " + node_name_ + " is cordoned could not be read",
      [this](TimePoint limit) { return client_.get_node(node_name_, limit); }, request_timeout);
  if (!node) {
    report_.message += "; whether it is cordoned now could not be read: " + node.error().message();
    co_return;
  }
  changes_cordon_ = false;
  const auto mark = mark_of(*node);
  cordoned_by_us_ = mark && mark->run == options_.run_id && cordon_owner(*node) == CordonOwner::haulout;
  show_cordon(*node);
  co_await restore_cordon();
}

asio::awaitable<void> Drain::Impl::restore_cordon() {
  const bool unsuccessful = report_.outcome == Outcome::blocked || report_.outcome == Outcome::failed;
  if (!unsuccessful || !options_.restore_cordon_on_failure || !cordoned_by_us_) co_return;
  // The drain has ended, so the deadline is replaced by a limit for this request.
  deadline_ = saturating_add(now(), request_timeout);
  changes_cordon_ = true;
  auto restored = co_await change_cordon(
      "the cordon of node " + node_name_ + " could not be removed",
      [this](TimePoint limit) { return take_back(client_, rng_, node_name_, options_.run_id, limit); });
  if (!restored) {
    report_.message +=
        fmt::format("; {}, uncordoning it failed: {}",
                    changes_cordon_ ? "it is unknown whether the node is still cordoned" : "the node is still cordoned",
                    restored.error().message());
    co_return;
  }
  const bool taken_back = report_.cordon.after && !restored->after.unschedulable;
  show_cordon(restored->after);
  if (taken_back) emit(EventType::uncordoned);
}

}  // namespace haulout::drain
