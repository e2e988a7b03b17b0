#include "cli/drain/wording.hpp"

#include <fmt/format.h>
#include <map>
#include <set>

#include "base/duration.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"

namespace haulout::cli {
namespace {

using drain::DryRunMode;
using drain::Outcome;
using drain::PodOutcome;
using drain::PodReport;
using drain::Report;
using drain::Verdict;

// Returns the suffix of a line in a dry run: " (dry run)" or " (server dry run)". Returns an empty string for a real
// drain.
std::string dry_run_suffix(drain::DryRunMode mode) {
  switch (mode) {
    case drain::DryRunMode::none: return "";
    case drain::DryRunMode::client: return " (dry run)";
    case drain::DryRunMode::server: return " (server dry run)";
  }
  return "";
}

// Returns why a pod is not deleted yet: its message with the reason in brackets, or the reason alone if it has no
// message.
std::string because(const PodReport& pod) {
  if (pod.message.empty()) return pod.reason;
  return without_subject(printable(pod.message), "pod " + pod.key()) +
         (pod.reason.empty() ? "" : " [" + pod.reason + "]");
}

// Returns the line about a detached volume that another node is expected to attach.
std::string reattach_line(const drain::VolumeReport& volume) {
  switch (volume.reattach) {
    case drain::Reattach::waiting:
      return fmt::format("{} is detached, waiting until another node has attached it: {}", volume.text(),
                         printable(volume.message));
    case drain::Reattach::attached: return fmt::format("{} is attached to node {}", volume.text(), volume.attached_to);
    case drain::Reattach::late: return fmt::format("Warning: {}: {}", volume.text(), printable(volume.message));
    case drain::Reattach::unclaimed:
    case drain::Reattach::none: break;
  }
  return fmt::format("{} is not attached to another node, and the drain does not wait for that: {}", volume.text(),
                     printable(volume.message));
}

struct Kind {
  const char* reason;
  const char* skipped;  // the text after "Warning: ignoring "; empty: no warning is printed
  const char* refused;
};
constexpr Kind kinds[] = {
    {reason::daemon_set_managed, "DaemonSet-managed Pods",
     "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"},
    {reason::orphaned_daemon_set_pod, "Pods whose DaemonSet was deleted",
     "Pods whose DaemonSet was deleted (use --force to override)"},
    {reason::empty_dir, "Pods with local storage",
     "Pods with local storage (use --delete-emptydir-data to override; their data will be lost)"},
    {reason::unmanaged, "Pods that declare no controller",
     "Pods that declare no controller (use --force to override; they are not created again)"},
    {reason::single_replica, "Pods that are the single replica of their controller",
     "Pods that are the single replica of their controller (scale the controller up, annotate the pod with "
     "haulout.dev/single-replica=allow, or, if no annotation says block, use --single-replica=warn)"},
    {reason::not_selected, "Pods that --pod-selector does not match", ""},
    {reason::pod_pinned, "Pods that their controller creates on this node again after each eviction", ""},
    {reason::finished, "finished Pods", ""},
    {reason::terminating_too_long, "Pods that have been terminating for too long", ""},
    {reason::mirror_pod, "", ""},  // no warning: static pods always stay on their node
};

const Kind* kind_of(const std::string& reason) {
  for (const Kind& kind : kinds)
    if (reason == kind.reason) return &kind;
  return nullptr;
}

// Returns the keys ("namespace/name") of the pods with this outcome, grouped by reason.
std::map<std::string, std::vector<std::string>> by_reason(const Report& report, PodOutcome outcome) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const PodReport& pod : report.pods)
    if (pod.outcome == outcome) groups[pod.reason].push_back(pod.key());
  return groups;
}

std::size_t count(const Report& report, PodOutcome outcome) {
  return static_cast<std::size_t>(std::count_if(report.pods.begin(), report.pods.end(),
                                                [&](const PodReport& pod) { return pod.outcome == outcome; }));
}

bool is_left(const PodReport& pod) {
  return pod.outcome == PodOutcome::waiting || pod.outcome == PodOutcome::terminating ||
         (pod.outcome == PodOutcome::planned && pod.verdict != Verdict::skip);
}

// Kubernetes' default grace period. A pod that was evicted less than this ago is expected to be terminating, so no
// advice is printed for it.
constexpr Duration long_to_terminate = std::chrono::seconds(30);

std::string cause_of(const PodReport& pod, WallTime now) {
  if (!pod.message.empty() || pod.outcome == PodOutcome::waiting) return because(pod);
  if (pod.evicted_at && now - *pod.evicted_at < long_to_terminate)
    return fmt::format("was evicted {} ago", format_duration(now - *pod.evicted_at));
  const std::string since =
      pod.evicted_at ? fmt::format("was evicted {} ago and has", format_duration(now - *pod.evicted_at)) : "has";
  return fmt::format("{} not been deleted; 'kubectl -n {} describe pod {}' may show why", since, pod.ns, pod.name);
}

// Appends one line per pod that is not deleted. If diagnoses are about the pod, the line shows them instead of the
// pod's own message, because they explain more. Then appends a line with the pods that were not tried yet (not in a dry
// run), the volumes that are still attached, and the diagnoses of other subjects.
void add_left_pods(std::vector<std::string>& lines, const Report& report, bool dry) {
  std::set<const drain::Diagnosis*> told;
  std::vector<std::string> untried;
  for (const PodReport& pod : report.pods) {
    if (!is_left(pod)) continue;
    if (pod.outcome == PodOutcome::planned && pod.message.empty()) {
      untried.push_back(pod.key());
      continue;
    }
    const std::string subject = "pod " + pod.key();
    std::vector<std::string> causes;
    for (const drain::Diagnosis& diagnosis : report.diagnoses) {
      if (diagnosis.subject != subject) continue;
      causes.push_back(fmt::format("{} [{}]", without_subject(printable(diagnosis.message), subject), diagnosis.code));
      told.insert(&diagnosis);
    }
    const std::string controller = pod.controller.empty() ? "" : " (" + pod.controller + ")";
    lines.push_back(fmt::format("  {}{} {}: {}", subject, controller, drain::to_string(pod.outcome),
                                causes.empty() ? cause_of(pod, report.finished_at) : joined(causes, "; ")));
  }
  if (!untried.empty() && !dry)
    lines.push_back(fmt::format("  {} not tried yet: {}", count_of(untried.size(), "pod"), joined(untried, ", ")));
  for (const drain::VolumeReport& volume : report.volumes)
    if (volume.outcome == drain::VolumeOutcome::detaching)
      lines.push_back(fmt::format("  {} is still attached: {}", volume.text(), printable(volume.message)));
  for (const drain::Diagnosis& diagnosis : report.diagnoses)
    if (!told.contains(&diagnosis))
      lines.push_back(fmt::format("  {} {}: {}", diagnosis.code, diagnosis.subject, printable(diagnosis.message)));
}

std::string tally(const Report& report) {
  const std::size_t gone = count(report, PodOutcome::evicted) + count(report, PodOutcome::gone);
  const std::size_t left = static_cast<std::size_t>(std::count_if(report.pods.begin(), report.pods.end(), is_left));
  return fmt::format("{} of {} deleted, {} left, {} skipped", gone, count_of(gone + left, "pod"), left,
                     count(report, PodOutcome::skipped));
}

void add_cordon_state(std::vector<std::string>& lines, const Report& report, const Wording& wording) {
  if (wording.dry_run != DryRunMode::none) return;
  if (!report.cordon.known)
    lines.push_back(fmt::format(
        "it is unknown whether node/{0} is cordoned now; 'kubectl get node {0}' shows it, and '{1} uncordon {0}' "
        "uncordons it",
        report.node, wording.program));
  else if (report.cordon.after)
    lines.push_back(fmt::format("node/{0} is cordoned; '{1} uncordon {0}' uncordons it", report.node, wording.program));
}

std::string volumes_detached(const Report& report) {
  const auto detached =
      std::count_if(report.volumes.begin(), report.volumes.end(),
                    [](const drain::VolumeReport& volume) { return volume.outcome == drain::VolumeOutcome::detached; });
  return detached == 0 ? "" : fmt::format(", {} detached", count_of(static_cast<std::size_t>(detached), "volume"));
}

// Returns kubectl's line for a pod in a dry run. kubectl prints "deleted" only in a server-side dry run, because a
// client-side one sends no deletion.
std::string dry_run_line(const PodReport& pod, const Wording& wording) {
  if (wording.deleting && wording.dry_run == DryRunMode::server)
    return fmt::format("pod/{} deleted{}", pod.name, dry_run_suffix(wording.dry_run));
  return fmt::format("evicting pod {}{}", pod.key(), dry_run_suffix(wording.dry_run));
}

Summary drained(const Report& report, const Wording& wording) {
  Summary result;
  if (wording.dry_run != DryRunMode::none)
    for (const PodReport& pod : report.pods)
      if (pod.verdict == Verdict::evict) result.out.push_back(dry_run_line(pod, wording));
  result.out.push_back(fmt::format("node/{} drained{}", report.node, dry_run_suffix(wording.dry_run)));
  if (wording.dry_run == DryRunMode::none)
    result.errors.push_back(
        fmt::format("{} deleted, {} skipped{}, took {}",
                    count_of(count(report, PodOutcome::evicted) + count(report, PodOutcome::gone), "pod"),
                    count(report, PodOutcome::skipped), volumes_detached(report),
                    format_duration(report.finished_at - report.started_at)));
  // The message of a dry run begins with the number of pods, which the lines above show already.
  if (const auto more = report.message.find("; "); wording.dry_run != DryRunMode::none && more != std::string::npos)
    result.errors.push_back("node/" + report.node + ": " + printable(report.message.substr(more + 2)));
  // Diagnoses that remain after a successful drain are printed, because a person should look at them.
  for (const drain::Diagnosis& diagnosis : report.diagnoses)
    result.errors.push_back(fmt::format("Warning: {} {}: {}", diagnosis.code, diagnosis.subject,
                                        without_subject(printable(diagnosis.message), diagnosis.subject)));
  for (const drain::VolumeReport& volume : report.volumes)
    if (volume.reattach == drain::Reattach::late) result.errors.push_back(reattach_line(volume));
  return result;
}

// Appends a line for each gang of which the policy refuses to evict members. Their messages name the gang.
void add_refused_gangs(std::vector<std::string>& lines, const Report& report) {
  std::map<std::string, std::vector<std::string>> gangs;
  for (const PodReport& pod : report.pods)
    if (pod.outcome == PodOutcome::refused && pod.reason == reason::gang_member)
      gangs[pod.message].push_back(pod.key());
  for (const auto& [message, keys] : gangs)
    lines.push_back(
        fmt::format("  Pods that are {} (use --gangs=evict to stop it, or --gangs=wait to wait until they "
                    "have finished): {}",
                    printable(message), joined(keys, ", ")));
}

Summary refused(const Report& report) {
  Summary result;
  if (!report.fits.empty()) {
    result.errors.push_back(fmt::format(
        "error: node/{} was not drained, and nothing was changed: not all of its pods {} on other nodes (to drain it "
        "anyway: --check-fit=warn)",
        report.node, placement::count(report.fits, placement::Fit::does_not_fit) != 0 ? "fit" : "are known to fit"));
    for (const placement::PodFit& fit : report.fits)
      if (fit.fit != placement::Fit::fits)
        result.errors.push_back(fmt::format("  {} {}", fit.pod, printable(placement::clause(fit))));
    return result;
  }
  result.errors.push_back(
      fmt::format("error: node/{} was not drained, and nothing was changed: policy forbids the eviction of {}",
                  report.node, count_of(count(report, PodOutcome::refused), "pod")));
  for (const auto& [reason, keys] : by_reason(report, PodOutcome::refused)) {
    if (reason == reason::gang_member) {
      add_refused_gangs(result.errors, report);
      continue;
    }
    const std::string known = refusal_of(reason);
    result.errors.push_back(fmt::format("  {}: {}", known.empty() ? reason : known, joined(keys, ", ")));
  }
  return result;
}

}  // namespace

std::string refusal_of(const std::string& reason) {
  const Kind* kind = kind_of(reason);
  return kind == nullptr ? "" : kind->refused;
}

std::vector<std::string> skip_warnings(const Report& report) {
  std::vector<std::string> lines;
  for (const auto& [reason, keys] : by_reason(report, PodOutcome::skipped)) {
    const Kind* kind = kind_of(reason);
    const std::string what = kind == nullptr ? "Pods (" + reason + ")" : kind->skipped;
    if (!what.empty()) lines.push_back(fmt::format("Warning: ignoring {}: {}", what, joined(keys, ", ")));
  }
  // No controller replaces these pods: warn in kubectl's wording. Finished pods are left out, because their deletion
  // loses nothing.
  std::vector<std::string> lost;
  for (const PodReport& pod : report.pods)
    if (pod.outcome == PodOutcome::planned && pod.verdict == Verdict::evict && pod.controller.empty() &&
        pod.reason != reason::finished)
      lost.push_back(pod.key());
  if (!lost.empty())
    lines.push_back(fmt::format("Warning: deleting Pods that declare no controller: {}", joined(lost, ", ")));
  return lines;
}

std::vector<std::string> fit_findings(const Report& report) {
  std::vector<std::string> findings;
  for (const placement::PodFit& fit : report.fits)
    if (fit.fit != placement::Fit::fits)
      findings.push_back(fmt::format("pod {} {}", fit.pod, printable(placement::clause(fit))));
  return findings;
}

std::vector<std::string> fit_warnings(const Report& report) {
  std::vector<std::string> lines = fit_findings(report);
  for (std::string& line : lines) line.insert(0, "Warning: ");
  return lines;
}

std::string cordon_line(const std::string& node, bool changed, bool on, DryRunMode dry_run) {
  return fmt::format("node/{} {}{}{}", node, changed ? "" : "already ", on ? "cordoned" : "uncordoned",
                     dry_run_suffix(dry_run));
}

std::string deletion_line(const std::string& node, DryRunMode dry_run) {
  return fmt::format("node \"{}\" deleted{}", node, dry_run_suffix(dry_run));
}

Summary retirement_summary(const std::string& node, const drain::RetirementReport& retirement, DryRunMode dry_run) {
  using Outcome = drain::RetirementOutcome;
  using drain::NodeDeletion;
  Summary result;
  const bool dry = dry_run != DryRunMode::none;
  if (retirement.outcome == Outcome::retired) {
    if (dry)
      result.out.push_back(deletion_line(node, dry_run));
    else
      result.errors.push_back(
          fmt::format("node/{} retired: no pod, VolumeAttachment, CSINode or Lease of it is left{}", node,
                      retirement.deletion == NodeDeletion::by_another ? "; another program has deleted its Node" : ""));
    return result;
  }
  std::string what = dry ? "would be drained, but not retired" : "was drained, but not retired";
  if (retirement.deletion == NodeDeletion::unknown) what = "was drained; it is unknown whether its Node is deleted";
  if (retirement.deletion == NodeDeletion::done || retirement.deletion == NodeDeletion::by_another)
    what = "was deleted, but its retirement is not complete";
  const std::string why = retirement.outcome == Outcome::kept ? "" : printable(retirement.message);
  result.errors.push_back(fmt::format("error: node/{} {}{}{}", node, what, why.empty() ? "" : ": ", why));
  for (const drain::Leftover& left : retirement.leftovers)
    result.errors.push_back(fmt::format("  {}: {}", printable(left.what), printable(left.why)));
  return result;
}

Summary summary(const Report& report, const Wording& wording) {
  if (report.outcome == Outcome::drained) return drained(report, wording);
  if (report.outcome == Outcome::refused) return refused(report);
  Summary result;
  const bool dry = wording.dry_run != DryRunMode::none;
  std::string what = "was not drained";
  switch (report.outcome) {
    case Outcome::blocked:
      if (dry) break;
      what = fmt::format("was not drained {} {}", report.message.empty() ? "within" : "after",
                         format_duration(report.finished_at - report.started_at));
      break;
    case Outcome::cancelled: what = "was not drained: interrupted"; break;
    default: break;
  }
  std::string message = report.outcome == Outcome::cancelled ? "" : printable(report.message);
  if (message.empty() && report.error) message = printable(report.error->message());
  result.errors.push_back(
      fmt::format("error: node/{} {}{}{}", report.node, what, message.empty() ? "" : ": ", message));
  if (!report.pods.empty() && !dry) result.errors.push_back("  " + tally(report));
  add_left_pods(result.errors, report, dry);
  add_cordon_state(result.errors, report, wording);
  return result;
}

namespace {

using drain::EventType;

// Returns the end of the sentence "pod … is". Messages that begin with a participle ("blocked by …", "kept by …")
// already complete it; others follow "waiting: ".
std::string why_it_waits(const PodReport& pod) {
  for (const char* beginning : {"blocked by ", "selected by ", "kept by ", "protected by ", "waiting "})
    if (pod.message.starts_with(beginning)) return because(pod);
  return "waiting: " + because(pod);
}

std::string vanished_line(const PodReport& pod, const Wording& wording) {
  if (pod.outcome == PodOutcome::gone) return fmt::format("pod/{} gone", pod.name);
  return fmt::format("pod/{} {}", pod.name, wording.deleting ? "deleted" : "evicted");
}

std::optional<std::string> pod_line(const drain::Event& event, const Wording& wording) {
  if (event.pod == nullptr) return std::nullopt;
  const PodReport& pod = *event.pod;
  switch (event.type) {
    case EventType::eviction_sent:
    case EventType::signal_sent:
      if (pod.attempts > 1) return std::nullopt;  // a retry prints no second line
      return fmt::format("{} pod {}{}", wording.deleting ? "deleting" : "evicting", pod.key(),
                         dry_run_suffix(wording.dry_run));
    case EventType::parked: return fmt::format("pod {} is {}", pod.key(), why_it_waits(pod));
    case EventType::vanished: return vanished_line(pod, wording);
    case EventType::terminating: return fmt::format("pod {} is terminating", pod.key());
    case EventType::left: return fmt::format("pod {} stays: {}", pod.key(), because(pod));
    case EventType::late_pod:
      return fmt::format("pod {} appeared on the node during the drain; the same rules apply to it", pod.key());
    default: return std::nullopt;
  }
}

std::optional<std::string> volume_line(const drain::Event& event) {
  if (event.volume == nullptr) return std::nullopt;
  if (event.type == EventType::volume_reattach) return reattach_line(*event.volume);
  if (event.type == EventType::volume_detached) return event.volume->text() + " detached";
  if (event.volume->outcome == drain::VolumeOutcome::in_use)
    return event.volume->text() + " is used again by a pod that must leave; the drain waits for that pod first";
  if (event.volume->outcome == drain::VolumeOutcome::kept)
    return event.volume->text() + " is used by a pod that stays on the node, so the drain does not wait for it";
  if (event.volume->outcome != drain::VolumeOutcome::detaching)
    return event.volume->text() + " is not waited for any more, because no pod of the node is known to have used it";
  return fmt::format("{} is still attached: {}", event.volume->text(), printable(event.volume->message));
}

std::optional<std::string> diagnosis_line(const drain::Event& event) {
  if (event.diagnosis == nullptr) return std::nullopt;
  const drain::Diagnosis& diagnosis = *event.diagnosis;
  if (event.type == EventType::diagnosis_withdrawn)
    return fmt::format("resolved: {} {}", diagnosis.code, diagnosis.subject);
  return fmt::format("problem: {} {}: {}", diagnosis.code, diagnosis.subject,
                     without_subject(printable(diagnosis.message), diagnosis.subject));
}

}  // namespace

bool is_line_of_kubectl(drain::EventType type) {
  return type == EventType::eviction_sent || type == EventType::vanished || type == EventType::uncordoned;
}

std::optional<std::string> line_of(const drain::Event& event, const Wording& wording) {
  const std::string message = printable(event.message);
  switch (event.type) {
    case EventType::eviction_sent:
    case EventType::signal_sent:
    case EventType::parked:
    case EventType::vanished:
    case EventType::terminating:
    case EventType::left:
    case EventType::late_pod: return pod_line(event, wording);
    case EventType::volume_waiting:
    case EventType::volume_detached:
    case EventType::volume_reattach: return volume_line(event);
    case EventType::diagnosis_raised:
    case EventType::diagnosis_withdrawn: return diagnosis_line(event);
    case EventType::throttled: return "evictions wait: " + message;
    case EventType::disconnected: return "waiting for the API server: " + message;
    case EventType::reconnected: return std::string("no longer waiting for the API server");
    case EventType::uncordoned: return fmt::format("node/{} uncordoned", event.node);
    case EventType::planned:
      return fmt::format("node/{}: {} to evict, {} skipped", event.node, count_of(event.progress.to_evict, "pod"),
                         event.progress.skipped);
    case EventType::fit_checked:  // fit_warnings() reports it
    case EventType::cordoned:     // cordon_line() reports it: the line depends on whether the node was cordoned before
    case EventType::evicted:      // kubectl prints its line when the pod is deleted
    case EventType::resumed:      // a later event of the pod has a line
    case EventType::settling:
    case EventType::finished: return std::nullopt;  // summary() reports the end
  }
  return std::nullopt;
}

std::vector<std::string> given_back_lines(const std::string& node, const Result<drain::GivenBack>& given,
                                          const std::string& program) {
  std::vector<std::string> lines;
  if (given)
    for (const std::string& pod : given->pods) lines.push_back(fmt::format("pod/{} given back to its ReplicaSet", pod));
  if (given && given->left.empty()) return lines;
  lines.push_back(
      fmt::format("error: node/{}: pods that were to be replaced in advance could not be given back to their "
                  "ReplicaSets: {}; run {} "
                  "release {}",
                  node, printable(given ? drain::words_of(given->left) : given.error().message()), program, node));
  return lines;
}

std::vector<std::string> withdrawn_lines(const std::string& node, const Result<drain::Withdrawn>& withdrawn,
                                         const std::string& program) {
  std::vector<std::string> lines;
  if (withdrawn)
    for (const std::string& pod : withdrawn->pods)
      lines.push_back(fmt::format("pod/{}: its EvictionRequest was withdrawn", pod));
  if (withdrawn && withdrawn->left.empty()) return lines;
  lines.push_back(fmt::format("error: node/{}: EvictionRequests could not be withdrawn: {}; run {} release {}", node,
                              printable(withdrawn ? drain::words_of(withdrawn->left) : withdrawn.error().message()),
                              program, node));
  return lines;
}

}  // namespace haulout::cli
