#include "agent/lifecycle/advance.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "agent/hooks/hooks.hpp"
#include "agent/node/record.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {

namespace {

constexpr const char* rebooted_meanwhile =
    "the machine went down, or was rebooted by others, before the agent requested its reboot";
// Limit for a message in the record, in characters. A record has up to five of them (`remembered_attempts`).
constexpr std::size_t longest_why = 240;

template <class T>
void remember(std::vector<T>& all, T one) {
  all = remembered(std::move(all), std::move(one));
}

WallTime after(WallTime now, Duration delay) {
  return now + std::chrono::duration_cast<WallTime::duration>(delay);
}

// Removes the passed hook points that have to run again. A point stays passed until its step is repeated: a second
// drain repeats after-drain; each boot and each new attempt repeat all points.
void hooks_come_again(Record& record, State from, Event event) {
  // A degraded node keeps the time at which its hook was asked, so that the hook can still answer, unless the machine
  // boots again.
  const bool degraded = record.state == State::degraded || from == State::degraded;
  if (!degraded || event == Event::boot_changed) record.hooks_asked.reset();
  if (event == Event::turn_taken || event == Event::boot_changed) record.hooks_passed.clear();
  if (record.state == State::draining) std::erase(record.hooks_passed, to_string(HookPoint::after_drain));
  if (record.state == State::idle || record.state == State::pending) record.hooks_passed.clear();
}

// Sets the delay before the next attempt. A failed attempt may have evicted the node's pods in vain, so the delay grows
// with each failure.
void back_off(Record& record, const Moment& moment, const LifecycleTimes& times) {
  Duration delay = times.backoff;
  for (unsigned i = 0; i < record.failures && delay < times.backoff_cap; ++i) delay *= 2;
  ++record.failures;
  record.cause = moment.cause;
  record.cause_message = moment.cause_message;
  record.not_before = after(moment.now, std::min(delay, times.backoff_cap));
}

void take_up(Record& record, const Moment& moment) {
  record.slot = moment.slot;
  record.slot_version = moment.slot_version;
  record.run = moment.run;
  record.surges = record.surges || moment.surges;
  record.asks = record.asks || moment.asks;
  record.cordoned = false;
  record.leaked.clear();
  record.evicted_daemon_sets.clear();
  record.pinned.clear();
  record.requested = moment.requested;
  // If the last boot was never verified, the taints since then may be why. So they do not count as older ones.
  if (!record.unverified)
    record.old_taints = moment.readiness_taints;
  else if (!record.old_taints)
    record.old_taints.emplace();
  record.reasons = moment.pending.reasons;
  // The updates that the agent installs are a reason for the reboot that may follow.
  if (moment.updates.need == Need::yes)
    record.reasons.insert(record.reasons.end(), moment.updates.first.begin(), moment.updates.first.end());
  note_updates(record, moment.updates);
  record.in_place = false;
  record.from = moment.booted;
  record.to = moment.pending.need == Need::yes ? moment.pending.target : std::string();
  record.began = moment.now;
  record.judged = false;
}

void come_to_an_end(Record& record, const Moment& moment) {
  std::erase(record.failed_versions, moment.booted);
  record.unverified = false;
  const bool again = std::exchange(record.judged, true);
  const bool known = !moment.booted.empty();
  // Only an update of this agent's own is a proof, also if it has failed at first. A boot into another version ends an
  // earlier proof. A version that could not be read proves nothing, and disproves nothing.
  const bool to_a_version = record.began && !attempted_version(record).empty();
  if (to_a_version || (known && moment.booted == record.failed_to))
    record.updated_to = moment.booted;
  else if (known && record.updated_to != moment.booted)
    record.updated_to.clear();
  // The old version, which runs again, does not show that the new one is well.
  if (known && (moment.booted == record.failed_to || moment.booted != record.from)) record.failed_to.clear();
  if (!record.began) return;
  record.verified_at = moment.now;
  record.needed_since.reset();
  record.failures = 0;
  record.not_before.reset();
  if (!again && moment.now > *record.began)
    remember(record.durations, std::chrono::duration_cast<std::chrono::seconds>(moment.now - *record.began));
}

void forget_the_attempt(Record& record) {
  record.requested = false;
  record.reasons.clear();
  record.from.clear();
  record.to.clear();
  record.slot_version.clear();
  record.began.reset();
  record.judged = false;
  record.leaked.clear();
  record.evicted_daemon_sets.clear();
  record.pinned.clear();
  record.in_place = false;
  record.cause.clear();
  record.cause_message.clear();
}

// A node that needs nothing any more tries its failed version no more, so no other node waits for it. A version that
// was rolled back stays known as failed, because then the node needs nothing only because it refuses that version, or
// because it is not offered now. If the running version is unknown, so is whether the failure is over.
void end_the_failure(Record& record, const Moment& moment) {
  if (moment.booted.empty()) return;
  const bool rolled_back =
      std::find(record.bad_targets.begin(), record.bad_targets.end(), record.failed_to) != record.bad_targets.end();
  if (!rolled_back) record.failed_to.clear();
}

// Returns the version that fails on this node with this event; empty if none does, or if it has no name.
std::string failed_version(const Record& record, Event event, const Moment& moment) {
  if (!moment.installs) return {};
  if (event == Event::not_verified) return record.to;
  const bool not_installed = event == Event::update_given_up && moment.cause == reason::update_failed;
  return not_installed ? moment.updates.target : std::string();
}

void degrade(Record& record, Event event, const Moment& moment) {
  record.cause = moment.cause;
  record.cause_message = moment.cause_message;
  // After `not_verified` and `boot_unknown` the machine has booted and may be unhealthy, so the cordon stays. After all
  // other events that lead here the node itself is healthy.
  record.uncordon = event != Event::not_verified && event != Event::boot_unknown;
  if (!record.uncordon) record.unverified = true;
  record.judged = true;
  if (event == Event::not_verified && record.updated_to == record.to) record.updated_to.clear();
  if (!attempted_version(record).empty()) record.failed_to = attempted_version(record);
  const bool rolled_back = event == Event::not_verified && !record.to.empty() && moment.booted == record.from;
  if (rolled_back &&
      std::find(record.bad_targets.begin(), record.bad_targets.end(), record.to) == record.bad_targets.end())
    remember(record.bad_targets, record.to);
  if (std::string version = failed_version(record, event, moment); !version.empty()) {
    std::erase(record.failed_versions, version);
    remember(record.failed_versions, std::move(version));
  }
}

// Returns true if the machine went down before the agent requested its reboot: it crashed, or a person rebooted it.
// Then the version that runs now says nothing about the success of the update.
bool nobody_had_asked(State from, const Moment& moment) {
  return from == State::draining || (from == State::ready && !moment.others_reboot);
}

// Counts the installations that have failed in a row. If the machine goes down during an installation, it counts as
// failed.
void count_installations(Record& record, State from, Event event) {
  const bool cut_short = event == Event::boot_changed && std::exchange(record.installing, false);
  record.installing = false;
  record.service_restarts = 0;
  record.restarted.clear();
  if (event == Event::update_failed || event == Event::update_given_up || (from == State::updating && cut_short))
    ++record.failed_updates;
  if (event == Event::installed || event == Event::reboot_not_needed || from == State::degraded)
    record.failed_updates = 0;
  if (event == Event::reboot_not_needed) record.in_place = record.unverified = true;
  if (event == Event::boot_changed) record.in_place = false;
}

// Adds an attempt that has ended to `attempts`, where people can read it later, for example while the node waits for
// its next maintenance window.
void tell_how_it_ended(Record& record, State from, Event event, const Moment& moment) {
  const bool was_under_way = from == State::draining || from == State::updating || from == State::ready ||
                             from == State::rebooting || (from == State::verifying && record.began && !record.judged);
  const bool over = record.state == State::pending || record.state == State::degraded ||
                    record.state == State::uncordoning ||
                    (event == Event::boot_changed && (from == State::updating || nobody_had_asked(from, moment)));
  if (!was_under_way || !over) return;
  PastAttempt attempt{moment.now, moment.cause, shortened(moment.cause_message, longest_why)};
  if (event == Event::verified) {
    attempt = {moment.now, "Updated", "version " + record.to + " runs"};
    if (record.to.empty()) attempt.why = record.in_place ? "updated without a reboot" : "rebooted and verified";
  } else if (event == Event::not_needed) {
    attempt = {moment.now, "NotNeeded", "no reboot is needed any more"};
  } else if (event == Event::turn_lost) {
    attempt = {moment.now, "TurnLost", "the node lost its slot, so the attempt ended"};
  } else if (event == Event::boot_changed) {
    attempt = {
        moment.now, reason::rebooted_meanwhile,
        from == State::updating ? "the machine went down during the installation of updates" : rebooted_meanwhile};
  }
  record.attempts.push_back(std::move(attempt));
  if (record.attempts.size() > remembered_attempts) record.attempts.erase(record.attempts.begin());
}

// A taint that has gone before the boot must be gone after it, too. Right after a boot the controller may not have set
// its taints yet.
void forget_taints_that_have_gone(Record& record, Event event, const Moment& moment) {
  const bool before_boot = record.state == State::draining || record.state == State::updating ||
                           record.state == State::ready || record.state == State::rebooting;
  if (!before_boot || event == Event::boot_changed || !record.old_taints) return;
  std::erase_if(*record.old_taints, [&](const std::string& key) { return !moment.readiness_taints.contains(key); });
}

// Sets the reason RebootedMeanwhile after a boot that belongs to no attempt, so that it is not reported as an update.
void tell_whose_boot_it_was(Record& record) {
  const bool after_boot =
      record.state == State::verifying || record.state == State::uncordoning || record.state == State::soaking;
  if (!after_boot || record.began) return;
  record.cause = reason::rebooted_meanwhile;
  record.cause_message = rebooted_meanwhile;
}

}  // namespace

Record advance(Record record, Event event, const Moment& moment, const LifecycleTimes& times) {
  const State from = record.state;
  const auto to = next_state(from, event);
  if (!to) std::terminate();
  if (from == State::draining && (event == Event::drained || event == Event::update_due) && moment.now > record.since)
    record.drain_took = std::chrono::duration_cast<std::chrono::seconds>(moment.now - record.since);
  record.state = *to;
  record.since = moment.now;
  record.boot_id = moment.boot_id;
  record.deadline.reset();
  record.asked = false;
  if (event != Event::reboot_overdue) record.asked_again = false;
  record.waits_for.clear();
  record.marks.reset();
  if (from == State::degraded || from == State::pending) {
    record.cause.clear();
    record.cause_message.clear();
    record.uncordon = false;
  }
  hooks_come_again(record, from, event);
  count_installations(record, from, event);
  tell_how_it_ended(record, from, event, moment);
  if (event == Event::boot_changed) {
    if (nobody_had_asked(from, moment)) forget_the_attempt(record);
    // Forget reboots that were only requested: each request has led to this boot or to none.
    std::erase_if(record.reboots, [](const PastReboot& reboot) { return reboot.asked_only; });
    remember(record.reboots, PastReboot{moment.now, record.reasons, record.to});
    record.unverified = true;
  } else if (moment.pending.need == Need::no) {
    note_no_need(record);
  }
  switch (*to) {
    case State::idle:
    case State::pending:
      record.cordoned = false;
      // An idle node owes nothing: its next update begins with the taints that it has then.
      if (record.state == State::idle) record.unverified = false;
      if (record.state == State::idle)
        record.needed_since.reset();
      else if (!record.needed_since)
        record.needed_since = moment.now;
      if (record.state == State::idle && event == Event::not_needed) end_the_failure(record, moment);
      if (!record.unverified) record.old_taints.reset();
      // A later boot does not belong to the attempt that has ended.
      forget_the_attempt(record);
      // After one of these events the agent starts another attempt, but only after the backoff. A gate that closes
      // while the node waits has a cause only if the node had its slot already.
      if (event == Event::drain_ended || event == Event::update_failed || event == Event::cordon_lost ||
          (event == Event::gate_closed && (from != State::waiting || !moment.cause.empty())))
        back_off(record, moment, times);
      break;
    case State::draining:
      if (event == Event::turn_taken) take_up(record, moment);
      break;
    case State::updating: record.deadline = after(moment.now, times.update_limit); break;
    case State::rebooting:
      record.method = event == Event::reboot_overdue ? record.method + 1 : 0;
      record.deadline = after(moment.now, times.reboot_limit);
      break;
    case State::verifying: record.deadline = after(moment.now, times.verify_limit); break;
    case State::uncordoning: come_to_an_end(record, moment); break;
    case State::soaking: record.deadline = after(moment.now, times.soak); break;
    case State::degraded: degrade(record, event, moment); break;
    case State::unknown:
    case State::waiting: break;
    case State::ready:
      // The image was written after the drain, so only now it is known to which version the reboot leads.
      if (event == Event::installed && moment.pending.need == Need::yes && !moment.pending.target.empty()) {
        record.to = moment.pending.target;
        if (!record.slot_version.empty()) record.slot_version = record.to;
      }
      break;
  }
  forget_taints_that_have_gone(record, event, moment);
  tell_whose_boot_it_was(record);
  return record;
}

void note_request(Record& record, BootMarks marks, WallTime now) {
  record.asked = true;
  record.marks = std::move(marks);
  remember(record.reboots, PastReboot{.at = now, .reasons = record.reasons, .target = record.to, .asked_only = true});
}

void withdraw_request(Record& record) {
  if (!std::exchange(record.asked, false)) return;
  record.marks.reset();
  if (!record.reboots.empty() && record.reboots.back().asked_only) record.reboots.pop_back();
}

void note_no_need(Record& record) {
  if (!record.reboots.empty()) record.reboots.back().cleared = true;
}

void note_updates(Record& record, const Updates& updates) {
  if (updates.need == Need::unknown) return;
  record.updates = updates.first;
  if (updates.count > updates.first.size())
    record.updates.push_back("and " + std::to_string(updates.count - updates.first.size()) + " more");
}

}  // namespace haulout::agent
