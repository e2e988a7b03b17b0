#include "demo/judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"
#include "sim/store.hpp"

namespace haulout::demo {
namespace {

using sim::Json;

std::string key_text(const sim::Key& key) {
  return key.ns + "/" + key.name;
}

}  // namespace

std::string DemoJudge::when(TimePoint now) const {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(now - began_).count());
}

void DemoJudge::see(const sim::Change& change) {
  if (change.key.resource == "nodes") see_node(change);
  if (change.key.resource == "pods") see_pod(change);
  if (change.key.resource == "poddisruptionbudgets") see_budget(change);
  if (change.key.resource != "leases") return;
  if (change.type == sim::ChangeType::deleted)
    turns_.erase(key_text(change.key));
  else
    turns_[key_text(change.key)] = sim::text(*change.object, "/spec/holderIdentity");
}

void DemoJudge::see_node(const sim::Change& change) {
  const std::string& name = change.key.name;
  if (change.type == sim::ChangeType::deleted) {
    nodes_.erase(name);
    out_.erase(name);
    return;
  }
  NodeTruth& node = nodes_[name];
  const Json& object = *change.object;
  node.uid = sim::uid_of(object);
  node.cordoned = sim::flag(object, "/spec/unschedulable");
  node.ready = sim::node_ready(object);
  node.state = sim::label(object, "haulout.dev/state").value_or("");
  node.wants_reboot = sim::label(object, "haulout.dev/reboot-required") != "false";
  node.message = sim::annotation(object, "haulout.dev/message");
  if (node.cordoned || !node.ready)
    out_.insert(name);
  else
    out_.erase(name);
  look_at_nodes(change.time);
}

void DemoJudge::look_at_nodes(TimePoint now) {
  if (out_.size() > 1 && out_.size() > most_out_)
    too_many_out_.push_back(fmt::format("at {}: {}", when(now), fmt::join(out_, " and ")));
  most_out_ = std::max(most_out_, out_.size());
}

void DemoJudge::see_pod(const sim::Change& change) {
  const std::string uid = sim::uid_of(*change.object);
  if (change.type == sim::ChangeType::deleted)
    pods_.erase(uid);
  else
    pods_[uid] = change.object;
  look_at_budgets(change.time);
}

void DemoJudge::see_budget(const sim::Change& change) {
  const std::string key = key_text(change.key);
  if (change.type == sim::ChangeType::deleted) {
    budgets_.erase(key);
    budget_truth_.erase(key);
    return;
  }
  budgets_[key] = change.object;
  budget_truth_[key].needed = sim::number(*change.object, "/status/desiredHealthy");
  look_at_budgets(change.time);
}

std::int64_t DemoJudge::healthy(const Json& budget) const {
  const auto selector = sim::Selector::from_object(sim::at(budget, "/spec/selector"));
  return std::count_if(pods_.begin(), pods_.end(), [&](const auto& entry) {
    const Json& pod = *entry.second;
    return sim::ns_of(pod) == sim::ns_of(budget) && selector.matches(pod) && sim::pod_ready(pod) &&
           !sim::terminating(pod);
  });
}

void DemoJudge::look_at_budgets(TimePoint now) {
  for (const auto& [key, budget] : budgets_) {
    BudgetTruth& truth = budget_truth_[key];
    const std::int64_t count = healthy(*budget);
    if (truth.needed > 0 && count >= truth.needed) {
      if (!truth.met) truth.fewest = count;
      truth.met = true;
      truth.broken = false;
    }
    if (!truth.met) continue;
    truth.fewest = std::min(truth.fewest, count);
    if (count < truth.needed && !truth.broken) {
      truth.broken = true;
      budgets_broken_.push_back(
          fmt::format("at {}: {} needs {} healthy pods and has {}", when(now), key, truth.needed, count));
    }
  }
}

void DemoJudge::see(const sim::AuditEntry& entry) {
  if (entry.resource != "pods") return;
  if (entry.applied && entry.subresource == "eviction" && !entry.dry_run) evicted_.insert(entry.uid);
  const bool deletes = entry.verb == "delete" || entry.verb == "deletecollection";
  if (deletes && entry.subresource.empty())
    deletions_.push_back(
        fmt::format("at {}: a client asked to {} {}/{}", when(entry.time), entry.verb, entry.ns, entry.name));
}

bool DemoJudge::holds_turn(const std::string& name, const NodeTruth& node) const {
  return std::any_of(turns_.begin(), turns_.end(),
                     [&](const auto& turn) { return turn.second == name + "/" + node.uid; });
}

void DemoJudge::machine_down(const std::string& name, TimePoint now) {
  NodeTruth& node = nodes_[name];
  node.up = false;
  ++reboots_;
  const auto broken = [&](const std::string& how) {
    bad_reboots_.push_back(fmt::format("at {}: {} went down {}", when(now), name, how));
  };
  if (!node.cordoned) broken("without a cordon");
  if (!holds_turn(name, node)) broken("without a slot");
  for (const auto& [uid, pod] : pods_)
    if (sim::text(*pod, "/spec/nodeName") == name && !sim::may_stay(*pod))
      broken(fmt::format("under pod {}/{}", sim::ns_of(*pod), sim::name_of(*pod)));
}

void DemoJudge::machine_up(const std::string& name) {
  NodeTruth& node = nodes_[name];
  node.up = true;
  ++node.boots;
}

std::string DemoJudge::unfinished(const std::string& name, const NodeTruth& node) const {
  if (!node.up) return "is down";
  if (node.boots == 0) return "has not rebooted";
  if (node.boots > 1) return fmt::format("has rebooted {} times", node.boots);
  if (!node.ready) return "is not Ready";
  if (node.cordoned) return "is still cordoned";
  if (holds_turn(name, node)) return "still holds its slot";
  if (node.wants_reboot || node.state != "idle") return "does not report that its update is complete";
  return "";
}

bool DemoJudge::over() const {
  return !nodes_.empty() && turns_.empty() && std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    return unfinished(entry.first, entry.second).empty();
  });
}

std::vector<std::string> DemoJudge::budgets_seen() const {
  std::vector<std::string> seen;
  for (const auto& [key, truth] : budget_truth_)
    if (truth.met)
      seen.push_back(
          fmt::format("{} needs {} healthy pods and never had fewer than {}", key, truth.needed, truth.fewest));
  if (seen.empty()) seen.emplace_back("there is none");
  return seen;
}

std::vector<DemoJudge::Promise> DemoJudge::verdict() const {
  std::vector<std::string> open;
  std::size_t updated = 0;
  for (const auto& [name, node] : nodes_) {
    const std::string why = unfinished(name, node);
    updated += why.empty();
    if (why.empty()) continue;
    const std::string shown = node.state.empty() ? "no agent has reported on it" : node.state + ": " + node.message;
    open.push_back(fmt::format("{} {} ({})", name, why, printable(shown)));
  }
  if (nodes_.empty()) open.emplace_back("there are no nodes");
  for (const auto& [lease, holder] : turns_) {
    const bool known = std::any_of(nodes_.begin(), nodes_.end(),
                                   [&](const auto& entry) { return holder == entry.first + "/" + entry.second.uid; });
    if (!known) open.push_back(fmt::format("slot {} is left behind, held by {}", lease, printable(holder)));
  }
  std::vector<std::string> budgets_broken = budgets_broken_;
  for (const auto& [key, truth] : budget_truth_)
    if (!truth.met) budgets_broken.push_back(key + " never had the healthy pods that it needs");
  return {
      {"at most one node is unavailable at a time",
       too_many_out_,
       {fmt::format("at most {} of {} nodes was unavailable", most_out_, nodes_.size())}},
      {"no PodDisruptionBudget is violated", std::move(budgets_broken), budgets_seen()},
      {"a machine goes down only with its slot, cordoned and drained",
       bad_reboots_,
       {fmt::format("{}, {}", count_of(reboots_, "reboot"), count_of(evicted_.size(), "eviction"))}},
      {"no pod is deleted", deletions_, {count_of(deletions_.size(), "request") + " to delete a pod"}},
      {"every node ends updated and schedulable, with its slot released",
       open,
       {fmt::format("{} of {} nodes", updated, nodes_.size())}},
  };
}

std::vector<std::string> verdict_lines(const std::vector<DemoJudge::Promise>& verdict) {
  std::vector<std::string> lines;
  for (const DemoJudge::Promise& promise : verdict) {
    const bool kept = promise.broken.empty();
    lines.push_back(fmt::format("{}  {}", kept ? "kept  " : "BROKEN", promise.text));
    for (const std::string& how : kept ? promise.seen : promise.broken) lines.push_back("        - " + how);
  }
  return lines;
}

bool all_kept(const std::vector<DemoJudge::Promise>& verdict) {
  return std::all_of(verdict.begin(), verdict.end(),
                     [](const DemoJudge::Promise& promise) { return promise.broken.empty(); });
}

}  // namespace haulout::demo
