#include "audit/audit.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "agent/node/pool.hpp"
#include "audit/findings.hpp"
#include "audit/manifests.hpp"
#include "audit/node_rehearsals.hpp"
#include "audit/sifting.hpp"
#include "audit/world.hpp"
#include "drain/reasons.hpp"
#include "rehearse/stage.hpp"
#include "rehearse/world_json.hpp"

namespace haulout::audit {
namespace {

using sim::Json;

void name_files(Report& report, const std::map<std::string, std::string>& files) {
  for (Owner& owner : report.owners)
    for (Finding& finding : owner.findings) {
      auto file = files.find(finding.object);
      if (file == files.end()) file = files.find(owner.name.text());
      if (file != files.end()) finding.file = file->second;
    }
}

// A drain without a time limit counts as blocked when it has not ended after this time and the longest grace period.
constexpr Duration give_up = std::chrono::hours(6);

// The number of static findings about a node that block, and that are risks.
using Weight = std::pair<std::size_t, std::size_t>;

class Audit {
 public:
  // `dated`: the objects of the snapshot tell its time.
  Audit(const AuditInput& input, World world, bool dated)
      : input_(input), dated_(dated), world_(std::move(world)), findings_(world_) {}

  Report run() {
    report_.time = world_.now;
    report_.source = input_.source;
    report_.of_manifests = world_.of_manifests;
    report_.pods = world_.pods.size();
    report_.owners_in_all = world_.groups.size();
    assume_at_first();
    find_all(world_, findings_);
    for (const sim::Object& node : world_.nodes) add_node(*node);
    std::ranges::sort(report_.nodes, {}, &NodeResult::name);
    rehearse_worst();
    blame_unrehearsed();
    report_.owners = findings_.owners();
    return std::move(report_);
  }

 private:
  void assume_at_first() {
    if (world_.of_manifests) {
      report_.assumed = {
          "these are manifests: each controller has all its pods, all of them are Ready, and nothing is "
          "known of nodes",
          "controllers of other kinds than Deployment, ReplicaSet, StatefulSet and Job have no pods"};
      return;
    }
    report_.assumed = world_.stage->assumed();
    if (dated_) report_.assumed.push_back(rehearse::assumed_time(world_.now));
  }

  std::string pool_of(const Json& node) const {
    if (!input_.config.pool.empty()) return input_.config.pool;
    if (!input_.config.pool_label.empty()) return sim::label(node, input_.config.pool_label).value_or("");
    std::map<std::string, std::string> labels;
    const Json& all = sim::at(node, "/metadata/labels");
    if (all.is_object())
      for (const auto& [key, value] : all.items())
        if (value.is_string()) labels.emplace(key, value.get<std::string>());
    return agent::pool_of_role(labels);
  }

  void add_node(const Json& node) {
    const auto pods = world_.on_node.find(sim::name_of(node));
    report_.nodes.push_back({.name = sim::name_of(node),
                             .pool = pool_of(node),
                             .ready = sim::node_ready(node),
                             .cordoned = sim::flag(node, "/spec/unschedulable"),
                             .pods = pods == world_.on_node.end() ? 0 : pods->second.size()});
  }

  // Returns the nodes in the order in which they are rehearsed.
  std::vector<NodeResult*> worst_first() {
    std::map<std::string, Weight> weights;
    findings_.each([&](const OwnerName&, const Finding& finding) {
      for (const std::string& node : finding.nodes) {
        weights[node].first += finding.severity == Severity::blocks;
        weights[node].second += finding.severity == Severity::risk;
      }
    });
    std::vector<NodeResult*> nodes;
    nodes.reserve(report_.nodes.size());
    for (NodeResult& node : report_.nodes) nodes.push_back(&node);
    std::ranges::sort(nodes, [&](const NodeResult* a, const NodeResult* b) {
      return std::tie(weights[b->name], a->name) < std::tie(weights[a->name], b->name);
    });
    return nodes;
  }

  void rehearse_worst() {
    std::vector<NodeResult*> nodes = worst_first();
    if (nodes.size() > input_.rehearse_at_most) nodes.resize(input_.rehearse_at_most);
    rehearse::Assumptions assumptions = input_.assumptions;
    assumptions.give_up = give_up + rehearse::longest_grace(world_.stage->cluster);
    for (NodeResult* node : nodes) {
      const auto rehearsal = rehearse_node(world_, node->name, assumptions);
      if (!rehearsal) {
        report_.assumed.push_back(
            fmt::format("the drain of node {} could not be rehearsed: {}", node->name, rehearsal.error().message()));
        continue;
      }
      tell(*node, world_, *rehearsal);
      assume_more(*rehearsal);
      blame(*node);
      blame_for_room(*node, *rehearsal);
    }
  }

  void assume_more(const rehearse::Rehearsal& rehearsal) {
    for (std::size_t i = rehearsal.assumed_of_world; i < rehearsal.assumed.size(); ++i)
      if (assumed_.insert(rehearsal.assumed[i]).second) report_.assumed.push_back(rehearsal.assumed[i]);
  }

  // Adds a finding for each culprit that the static findings do not explain.
  void blame(const NodeResult& node) {
    for (const Culprit& culprit : node.blocked_by) {
      const OwnerName* owner = world_.owner_of(culprit.pod);
      Finding finding{.id = reason::drain_blocked,
                      .severity = Severity::blocks,
                      .object = culprit.reason,
                      .text = fmt::format("the rehearsed drain does not end: {}", culprit.text),
                      .way_out = "see what haulout rehearse says about the node",
                      .nodes = {node.name}};
      if (!owner) {
        findings_.add({{}, "Node", node.name}, std::move(finding));
      } else if (!findings_.blocks(*owner, node.name)) {
        finding.pods = {culprit.pod};
        findings_.add(*owner, std::move(finding));
      }
    }
  }

  // Adds a finding for the owners of pods that find no node when all pods of the drained node leave it.
  void blame_for_room(const NodeResult& node, const rehearse::Rehearsal& rehearsal) {
    std::map<OwnerName, Finding> lacking;
    for (const rehearse::NoRoom& pod : rehearsal.no_room) {
      const OwnerName* owner = owner_of(pod);
      if (!owner || findings_.has(*owner, "VolumeOnOneNode", node.name)) continue;
      Finding& finding = lacking[*owner];
      finding.pods.push_back(pod.pod);
      finding.text = fmt::format(
          "pods would stay Pending when the node is drained, because the other nodes have no room "
          "for all of them: {}",
          pod.message);
    }
    for (auto& [owner, finding] : lacking) {
      finding.id = "NoRoom";
      finding.severity = Severity::risk;
      finding.object = owner.text();
      finding.way_out = "add a node, lower the requests, or relax what keeps the pods from other nodes";
      finding.nodes = {node.name};
      finding.pods.clear();  // the replacements exist only in the rehearsal
      findings_.add(owner, std::move(finding));
    }
  }

  // The pods of NoRoom are replacements, which only the rehearsal has. Their controllers are the same.
  const OwnerName* owner_of(const rehearse::NoRoom& pod) const {
    const std::string ns = pod.pod.substr(0, pod.pod.find('/'));
    if (controllers_.empty())
      for (const WorldPod& known : world_.pods)
        if (known.pod.controller)
          controllers_.try_emplace(known.pod.ns + '/' + known.pod.controller->kind + '/' + known.pod.controller->name,
                                   &world_.group_of(known).owner);
    const auto found = controllers_.find(ns + '/' + pod.controller);
    return found == controllers_.end() ? nullptr : found->second;
  }

  // A node that was not rehearsed counts as blocked if a finding says so.
  void blame_unrehearsed() {
    std::map<std::string, NodeResult*> nodes;
    for (NodeResult& node : report_.nodes)
      if (node.verdict == Verdict::not_rehearsed) nodes.emplace(node.name, &node);
    if (nodes.empty()) return;
    findings_.each([&](const OwnerName& owner, const Finding& finding) {
      if (finding.severity != Severity::blocks) return;
      for (const std::string& pod : finding.pods) {
        const auto known = world_.by_key.find(pod);
        if (known == world_.by_key.end()) continue;
        const auto node = nodes.find(world_.pods[known->second].pod.node_name);
        if (node == nodes.end()) continue;
        node->second->blocked_by.push_back({pod, owner.text(), finding.id, finding.text});
      }
    });
    for (auto& [name, node] : nodes)
      if (!node->blocked_by.empty()) node->verdict = Verdict::blocked;
  }

  const AuditInput& input_;
  bool dated_;
  World world_;
  Findings findings_;
  Report report_;
  std::set<std::string> assumed_;
  mutable std::map<std::string, const OwnerName*> controllers_;  // by "namespace/kind/name"
};

}  // namespace

Result<Report> audit(AuditInput input) {
  // Reading takes the texts, and leaves out objects of kinds that it does not know.
  const auto names_kustomize = [](const rehearse::Document& document) {
    return document.text.find("kustomize.config.k8s.io") != std::string::npos;
  };
  const bool is_kustomization = input.snapshot.stored && std::ranges::any_of(input.snapshot.documents, names_kustomize);
  auto read = rehearse::objects_of(input.snapshot);
  if (!read) return std::move(read).error();
  const bool of_manifests = input.snapshot.stored && are_manifests(read->all);
  const auto dated = input.snapshot.stored && !of_manifests ? read->newest : std::optional<WallTime>();
  const std::set<std::string> others = std::move(read->others);
  const std::vector<rehearse::Skipped> skipped = std::move(read->skipped);
  Sifted manifests;
  std::vector<sim::Json> objects;
  if (of_manifests) {
    manifests = sifted(*std::move(read));
    if (auto any = check_manifests(manifests, others, skipped, is_kustomization); !any) return std::move(any).error();
    objects = expanded(std::move(manifests.objects));
  } else {
    objects = std::move(read->all);
    if (input.snapshot.stored)
      if (auto whole = rehearse::check_whole(objects); !whole) return std::move(whole).error();
  }
  const WallTime read_at = input.snapshot.read_at;
  auto world = make_world({.objects = std::move(objects),
                           .now = dated.value_or(read_at),
                           .drain = input.config.drain,
                           .assumptions = input.assumptions,
                           .team_labels = input.team_labels,
                           .of_manifests = of_manifests});
  if (!world) return std::move(world).error().with_context("the snapshot cannot be used");
  const bool evicts_none =
      of_manifests && world->pods.empty() && (have_cron_jobs(others) || !world->store().list("daemonsets").empty());
  Report report = Audit(input, *std::move(world), dated.has_value()).run();
  if (evicts_none)
    report.assumed.emplace_back(
        "a drain evicts nothing of these files: the pods of DaemonSets stay on their nodes, and CronJobs have pods "
        "only while they run");
  std::ranges::move(manifests.assumed, std::back_inserter(report.assumed));
  std::ranges::copy(assumed_of(skipped), std::back_inserter(report.assumed));
  name_files(report, manifests.files);
  return report;
}

void forget_known(Report& report, const Baseline& baseline) {
  const auto is_known = [&](const Finding& finding) {
    const auto before = baseline.find(finding.key);
    return before != baseline.end() && finding.severity <= before->second;
  };
  for (Owner& owner : report.owners) report.known += std::erase_if(owner.findings, is_known);
  std::erase_if(report.owners, [](const Owner& owner) { return owner.findings.empty(); });
}

}  // namespace haulout::audit
