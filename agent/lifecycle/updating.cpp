#include "agent/lifecycle/updating.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/lifecycle/node_record.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// A proof is valid for this time. If writing the record between the proof and the installation takes longer, the agent
// proves everything again.
constexpr Duration proof_keeps = std::chrono::seconds(5);
// An installation that an earlier process has begun gets at least this long, even if its limit is over: it may be about
// to end. So does the restart of services.
constexpr Duration resume_time = std::chrono::minutes(5);
// So often the agent restarts services in one installation. The second time is for an agent that was killed before it
// had begun. More would restart an agent without end that is among these services and stays among them.
constexpr unsigned most_restarts = 2;
// Maximum number of restarted services that the record keeps. It is an annotation, whose size is limited.
constexpr std::size_t most_kept = 200;

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void add(std::vector<std::string>& names, const std::vector<std::string>& more) {
  for (const std::string& name : more)
    if (!has(names, name)) names.push_back(name);
}

// Returns true if an earlier restart was for services of which one uses replaced files no longer. So it has taken
// place, and another one would not help those that are left.
bool has_helped(const std::vector<std::string>& restarted, const std::vector<std::string>& old) {
  return !std::all_of(restarted.begin(), restarted.end(), [&](const std::string& name) { return has(old, name); });
}

}  // namespace

struct Updating::Services {
  Result<std::vector<std::string>> old = std::vector<std::string>();  // use replaced files
  std::vector<std::string> failed{};                                  // were restarted and do not run
  std::vector<std::string> problems{};                                // clauses

  std::string words() const {
    std::vector<std::string> clauses;
    if (!old)
      clauses.push_back(
          "the updates are installed, but it is unknown which services still use files that they have replaced: " +
          old.error().message());
    else if (!old->empty())
      clauses.push_back(fmt::format(
          "{} still {} files that the updates have replaced: restart {}, or reboot the node (haulout request-reboot)",
          some_of(*old), old->size() == 1 ? "uses" : "use", old->size() == 1 ? "it" : "them"));
    if (!failed.empty())
      clauses.push_back(failed.size() == 1 ? fmt::format("{} was restarted and does not run", failed[0])
                                           : fmt::format("{} were restarted and do not run", some_of(failed)));
    clauses.insert(clauses.end(), problems.begin(), problems.end());
    return joined(clauses, "; ");
  }
};

Decision failed_update(const Record& record, unsigned limit, std::string reason, const std::string& why) {
  const unsigned failures = record.failed_updates + 1;
  Decision decision{
      Event::update_failed, std::move(reason),
      fmt::format("the installation of the updates did not succeed (attempt {} of {}): {}", failures, limit, why)};
  if (failures < limit) return decision;
  decision.event = Event::update_given_up;
  decision.message += fmt::format(
      "; install them yourself (and reboot the machine, if they need it), or annotate the Node with {}=reboot to try "
      "again",
      request_annotation);
  return decision;
}

Decision Updating::failed(std::string reason, const std::string& why) const {
  return failed_update(context_.record, context_.options.update_attempts, std::move(reason), why);
}

asio::awaitable<Decision> Updating::run() {
  Record& record = context_.record;
  if (context_.rebooted()) {
    // A machine that went down during the installation counts as one failed installation. The agent gives the update up
    // only after too many of them in a row; until then it enters this state again and finishes the installation.
    if (!record.installing) co_return Decision{Event::boot_changed};
    Decision decision = failed(reason::update_failed, "the machine went down during the installation");
    if (decision.event == Event::update_failed) decision = {Event::boot_changed};
    co_return decision;
  }
  if (!context_.parts.updater)
    co_return failed(reason::update_failed,
                     "the agent was restarted with --update off before the installation had ended; restart the agent "
                     "with its earlier --update to finish the installation");
  const Duration limit = context_.options.times.update_limit;
  deadline_ = context_.at(record.deadline.value_or(context_.wall()), limit);
  if (record.installing) deadline_ = std::max(deadline_, context_.within(resume_time));
  if (auto decision = co_await until_permitted()) co_return *std::move(decision);
  if (auto decision = co_await install()) co_return *std::move(decision);
  co_return co_await reboot_or_not();
}

TimePoint Updating::start_limit() {
  const Duration limit = context_.options.times.update_limit;
  context_.record.deadline = context_.wall() + std::chrono::duration_cast<WallTime::duration>(limit);
  return context_.within(limit);
}

asio::awaitable<bool> Updating::blocked() {
  auto who = co_await context_.parts.updater->blocked_by(context_.within(request_timeout));
  if (who && who->empty()) co_return false;
  problem_ =
      who ? *std::move(who) : "it is unknown whether another program installs packages: " + who.error().message();
  // An installation that an earlier process has begun blocks this one, but it is not another program's.
  co_await context_.writer.show(context_.record.installing ? reason::updating : reason::update_blocked, problem_);
  co_return true;
}

asio::awaitable<std::optional<Decision>> Updating::until_permitted() {
  Record& record = context_.record;
  Activity& activity = context_.activity;
  Backoff backoff(eager_patience);
  while (!activity.must_reload()) {
    // Wait first until no installation runs: one of an earlier agent, or of another program.
    if (co_await blocked()) {
      if (context_.now() >= deadline_) co_return failed(reason::update_blocked, problem_);
      co_await activity.wait(std::min(deadline_, context_.within(look_interval)));
      continue;
    }
    // The gates have to know what would be installed now.
    co_await need_.ask_now();
    auto trouble = co_await proof_.prove();
    if (trouble && *trouble) co_return *std::move(trouble);
    if (activity.must_reload()) break;
    if (!trouble) {
      // Without a proof the agent must not install anything. The time limit begins anew, because it is for the
      // installation only.
      co_await context_.writer.show(reason::api_unavailable,
                                    "the agent cannot verify that the node is drained: " + trouble.error().message());
      co_await context_.pause(backoff.next(context_.rng, trouble.error().retry_after));
      deadline_ = start_limit();
      continue;
    }
    const TimePoint proved = context_.now();
    record.installing = true;
    co_await context_.writer.show(reason::updating, with_names("installing updates", need_.updates()));
    if (!activity.must_reload() && context_.now() - proved <= proof_keeps) {
      // The view of the Node contains changes since the proof: from the watch, and from the answer to the write of the
      // record. So a cordon that was removed since the proof is noticed here.
      if (!context_.node().unschedulable) co_return cordon_lost();
      co_return std::nullopt;
    }
  }
  co_return Decision{Event::turn_lost};  // the agent ignores this event, because the Node has to be read again
}

// No event stops a running installation, because that would leave packages that are not configured. After the
// installation, the proofs before the reboot, or the verification, find out what has changed meanwhile.
asio::awaitable<std::optional<Decision>> Updating::install() {
  const auto done = co_await context_.parts.updater->install(deadline_);
  if (context_.activity.must_reload()) co_return Decision{Event::turn_lost};
  if (!done) co_return failed(reason::update_failed, done.error().message());
  co_return std::nullopt;
}

asio::awaitable<std::string> Updating::forbids_restart(TimePoint deadline) {
  Backoff backoff(eager_patience);
  while (!context_.activity.must_reload()) {
    const auto trouble = co_await proof_.prove();
    if (context_.activity.must_reload()) break;
    if (trouble && *trouble)
      co_return (*trouble)->message.empty() ? "the node is not drained, or has lost its slot" : (*trouble)->message;
    // The watch may have brought a change since the proof.
    if (!context_.node().unschedulable) co_return cordon_lost().message;
    if (trouble) co_return std::string();
    if (context_.now() >= deadline) co_return trouble.error().message();
    co_await context_.pause(backoff.next(context_.rng, trouble.error().retry_after));
  }
  co_return "the Node has to be read again";
}

asio::awaitable<void> Updating::restart(Services& services, TimePoint deadline) {
  Updater& updater = *context_.parts.updater;
  Record& record = context_.record;
  const std::vector<std::string> restarted_before = record.restarted;
  const auto failed_before = co_await updater.failed_services(*services.old, deadline);
  for (const std::string& name : *services.old)
    if (!has(record.restarted, name) && !(failed_before && has(*failed_before, name)) &&
        record.restarted.size() < most_kept)
      record.restarted.push_back(name);
  ++record.service_restarts;
  co_await context_.writer.show(
      reason::updating,
      "the updates are installed; restarting services that use replaced files: " + some_of(*services.old));
  // The write may have taken long, so the proof comes after it. If another client has uncordoned the node meanwhile,
  // pods may run on it, and nothing is restarted.
  const std::string forbids = co_await forbids_restart(deadline);
  if (context_.activity.must_reload()) co_return;
  if (!forbids.empty()) {
    record.restarted = restarted_before;
    services.problems.push_back("no service was restarted: " + forbids);
    co_return;
  }
  const auto done = co_await updater.restart_services(deadline);
  if (!done) services.problems.push_back("the restart of services has failed: " + done.error().message());
  // The restart may have used all of its time. If it has failed, and the answer is unknown, the services of the first
  // answer count.
  auto old = co_await updater.old_services(context_.within(resume_time));
  if (old || done) services.old = std::move(old);
}

asio::awaitable<void> Updating::restart_services() {
  Updater& updater = *context_.parts.updater;
  Activity& activity = context_.activity;
  const Record& record = context_.record;
  const TimePoint deadline = std::max(deadline_, context_.within(resume_time));
  Services services;
  services.old = co_await updater.old_services(deadline);
  if (!activity.must_reload() && services.old && !services.old->empty() && context_.node().unschedulable &&
      record.service_restarts < most_restarts && !has_helped(record.restarted, *services.old))
    co_await restart(services, deadline);
  if (activity.must_reload()) co_return;
  // An earlier agent may have been among the restarted services, so its restarts count as well.
  auto failed = co_await updater.failed_services(record.restarted, context_.within(resume_time));
  if (failed)
    services.failed = *std::move(failed);
  else
    services.problems.push_back("it is unknown whether the restarted services run: " + failed.error().message());
  std::vector<std::string> reasons = services.failed;
  if (services.old) add(reasons, *services.old);
  if (!activity.must_reload() && !reasons.empty()) {
    const auto demanded = co_await updater.need_reboot_for(std::move(reasons), context_.within(resume_time));
    if (!demanded)
      services.problems.push_back("the agent could not demand a reboot for these services: " +
                                  demanded.error().message());
    else if (*demanded)
      services.problems.push_back(
          "the agent demanded a reboot for these services, but the back end does not say that one is needed");
  }
  warning_ = services.words();
}

asio::awaitable<Decision> Updating::reboot_or_not() {
  Activity& activity = context_.activity;
  bool restarted = false;
  while (!activity.must_reload()) {
    co_await need_.ask_now();
    if (need_.reboot_wanted()) co_return Decision{Event::installed};
    if (need_.pending().need != Need::unknown) {
      if (restarted) {
        if (!warning_.empty() && !activity.must_reload())
          context_.writer.warn(reason::services_not_restarted, warning_);
        co_return Decision{Event::reboot_not_needed};
      }
      // A service that cannot be restarted may need a reboot, so the back end is asked again.
      co_await restart_services();
      restarted = true;
      continue;
    }
    co_await context_.writer.show(reason::backend_unknown,
                                  "the updates are installed, but it is unknown whether they "
                                  "need a reboot: " +
                                      need_.pending().problem);
    co_await activity.wait(context_.within(look_interval));
  }
  co_return Decision{Event::turn_lost};
}

}  // namespace haulout::agent
