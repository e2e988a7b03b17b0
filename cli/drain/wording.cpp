#include "cli/drain/wording.hpp"

#include <fmt/format.h>
#include <map>
#include <set>

#include "base/duration.hpp"
#include "base/text.hpp"
#include "cli/drain/wording_parts.hpp"
#include "drain/reasons.hpp"

namespace haulout::cli {
namespace {

using drain::DryRunMode;
using drain::Outcome;
using drain::PodOutcome;
using drain::PodReport;
using drain::Report;
using drain::Verdict;

struct Kind {
  const char* reason;
  const char* skipped;  // inserted in "Warning: ignoring …: a, b"; empty: no warning
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
     "Pods that are the single replica of their controller (scale it up during the drain, or use "
     "--single-replica=warn)"},
    {reason::not_selected, "Pods that the pod selector does not match", ""},
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

// Keys ("namespace/name") of the pods with this outcome, grouped by reason.
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

// Kubernetes' default grace period. A pod that was evicted more recently is terminating normally and needs no advice.
constexpr Duration long_to_terminate = std::chrono::seconds(30);

std::string cause_of(const PodReport& pod, WallTime now) {
  if (!pod.message.empty() || pod.outcome == PodOutcome::waiting) return because(pod);
  if (pod.evicted_at && now - *pod.evicted_at < long_to_terminate)
    return fmt::format("was evicted {} ago", format_duration(now - *pod.evicted_at));
  const std::string since =
      pod.evicted_at ? fmt::format("was evicted {} ago and has", format_duration(now - *pod.evicted_at)) : "has";
  return fmt::format("{} not been deleted; 'kubectl -n {} describe pod {}' may show why", since, pod.ns, pod.name);
}

// Appends one line per pod that is left. Its diagnoses replace its state, because they explain more. Below follow pods
// that were not tried yet (not in a dry run), volumes that are still attached, and diagnoses of other subjects.
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
  return fmt::format("{} of {} gone, {} left, {} skipped", gone, count_of(gone + left, "pod"), left,
                     count(report, PodOutcome::skipped));
}

void add_cordon_state(std::vector<std::string>& lines, const Report& report, const Wording& wording) {
  if (wording.dry_run != DryRunMode::none) return;
  if (!report.cordon.known)
    lines.push_back(
        fmt::format("it is unknown whether node/{0} is cordoned now, because the server had not answered yet; '{1} "
                    "uncordon {0}' uncordons it",
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

// The line of kubectl for a pod in a dry run. kubectl prints "deleted" only in a server-side dry run, because in a
// client-side one it sends no deletion.
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
        fmt::format("{} gone, {} skipped{}, took {}",
                    count_of(count(report, PodOutcome::evicted) + count(report, PodOutcome::gone), "pod"),
                    count(report, PodOutcome::skipped), volumes_detached(report),
                    format_duration(report.finished_at - report.started_at)));
  // Conditions that the drain could not change, and that a person should look at.
  for (const drain::Diagnosis& diagnosis : report.diagnoses)
    result.errors.push_back(fmt::format("Warning: {} {}: {}", diagnosis.code, diagnosis.subject,
                                        without_subject(printable(diagnosis.message), diagnosis.subject)));
  for (const drain::VolumeReport& volume : report.volumes)
    if (volume.reattach == drain::Reattach::late) result.errors.push_back(reattach_line(volume));
  return result;
}

Summary refused(const Report& report) {
  Summary result;
  if (!report.fits.empty()) {
    result.errors.push_back(fmt::format(
        "error: node/{} was not drained, and nothing was changed: not all of its pods {} elsewhere (--check-fit=warn "
        "continues anyway)",
        report.node, placement::count(report.fits, placement::Fit::does_not_fit) != 0 ? "fit" : "are known to fit"));
    for (const placement::PodFit& fit : report.fits)
      if (fit.fit != placement::Fit::fits)
        result.errors.push_back(fmt::format("  {} {}", fit.pod, printable(placement::clause(fit))));
    return result;
  }
  result.errors.push_back(
      fmt::format("error: node/{} was not drained, and nothing was changed: policy does not allow the eviction of {}",
                  report.node, count_of(count(report, PodOutcome::refused), "pod")));
  for (const auto& [reason, keys] : by_reason(report, PodOutcome::refused)) {
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
  // Nothing replaces pods without a controller: warn in kubectl's words. The deletion of a finished pod is no loss.
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
    case Outcome::node_gone: what = "was not drained: the node was deleted"; break;
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

}  // namespace haulout::cli
