#include "cli/people/explain_job.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "drain/controller_book.hpp"
#include "drain/pod_claims.hpp"
#include "drain/volumes.hpp"
#include "k8s/status.hpp"
#include "placement/fit.hpp"

namespace haulout::cli {

namespace asio = boost::asio;

Questions::Questions(k8s::Client& client, const NodeFacts& facts, std::function<TimePoint()> deadline, WallTime now)
    : client_(client), facts_(facts), deadline_(std::move(deadline)) {
  const std::set<std::string> uids = leaving_pods(facts, now);
  for (const k8s::Pod& pod : facts.pods)
    if (uids.contains(pod.uid)) leaving_.push_back(pod);
}

asio::awaitable<Asked> Questions::ask(Result<k8s::List<k8s::VolumeAttachment>> attachments) {
  co_await ask_for_namespaces();
  co_await ask_for_volumes(std::move(attachments));
  co_await ask_for_local_volumes();
  co_await ask_for_controllers();
  co_return std::move(asked_);
}

void Questions::not_known(std::string what, const Error& error) {
  asked_.problems.push_back(what + ": " + printable(error.message()));
}

asio::awaitable<void> Questions::ask_for_namespaces() {
  std::set<std::string> names;
  for (const k8s::Pod& pod : leaving_) names.insert(pod.ns);
  for (const std::string& name : names) {
    auto ns = co_await client_.get<k8s::Namespace>(name, deadline_());
    if (!ns && !k8s::is_gone(ns.error())) {
      not_known("whether the namespaces of the node's pods are being deleted", ns.error());
      co_return;
    }
    if (ns && ns->deletion_timestamp) asked_.dying.emplace(name, *std::move(ns));
  }
}

// Returns the claim that is bound to the PersistentVolume `name`, as "namespace/name". Returns an empty string if there
// is none.
Task<std::string> Questions::claim_of(std::string name) {
  const auto volume = co_await client_.get<k8s::PersistentVolume>(name, deadline_());
  if (!volume && !k8s::is_gone(volume.error())) co_return volume.error();
  if (!volume || volume->claim_name.empty()) co_return std::string();
  const std::string key = volume->claim_ns + "/" + volume->claim_name;
  if (!drain::may_be_of_an_earlier_claim(*volume)) co_return key;
  const auto claim =
      co_await client_.get<k8s::PersistentVolumeClaim>(volume->claim_ns, volume->claim_name, deadline_());
  co_return claim && !drain::is_volume_of(*volume, *claim) ? std::string() : key;
}

asio::awaitable<void> Questions::ask_for_volumes(Result<k8s::List<k8s::VolumeAttachment>> attachments) {
  constexpr const char* what = "how the node's volumes are attached";
  // The list of pods failed, so the users of the volumes are unknown.
  if (facts_.pods_problem) co_return;
  if (!attachments) co_return not_known(what, attachments.error());
  std::erase_if(attachments->items,
                [](const k8s::VolumeAttachment& attachment) { return attachment.persistent_volume.empty(); });
  if (attachments->items.empty()) co_return;
  const auto node = co_await client_.get<k8s::NodeVolumes>(facts_.node.name, deadline_());
  if (!node) co_return not_known(what, node.error());
  for (const std::string& volume : node->held) asked_.held.insert(k8s::attachment_name(volume, facts_.node.name));
  for (k8s::VolumeAttachment& attachment : attachments->items) {
    const bool well =
        asked_.held.contains(attachment.name) && !attachment.deleting() && attachment.detach_error.empty();
    if (well) continue;
    auto claim = co_await claim_of(attachment.persistent_volume);
    if (!claim) co_return not_known("which pods use the volumes that are attached to the node", claim.error());
    asked_.volumes.push_back({std::move(attachment), *std::move(claim)});
  }
}

asio::awaitable<void> Questions::ask_for_local_volumes() {
  std::size_t pods = 0;
  for (const k8s::Pod& pod : leaving_) {
    if (pod.claims.empty() || ++pods > most_pods) continue;
    auto local = co_await drain::local_volume_of(client_, pod, drain::hostname_of(facts_.node), deadline_);
    if (!local) co_return not_known("whether volumes exist only on this node", local.error());
    if (*local) asked_.local_volumes.emplace(pod.uid, **std::move(local));
  }
  if (pods > most_pods)
    asked_.problems.push_back(
        fmt::format("whether the volumes of {} of the {} pods with claims exist only on this node: explain reads the "
                    "volumes of at most {} pods",
                    pods - most_pods, pods, most_pods));
}

// Returns the topmost controller of the pod, for example its Deployment. Returns nullopt if that controller is not a
// Deployment, ReplicaSet or StatefulSet: its number of replicas is then only in its scale subresource, which `explain`
// does not read.
Task<std::optional<drain::Controller>> Questions::controller_of(k8s::Pod pod) {
  auto top =
      co_await drain::top_controller(*pod.controller, pod.ns, [this, ns = pod.ns](const k8s::OwnerReference& owner) {
        return k8s::get_workload(client_, owner.kind, ns, owner.name, deadline_());
      });
  if (!top) co_return std::move(top).error();
  co_return std::move(top->controller);
}

asio::awaitable<void> Questions::ask_for_controllers() {
  constexpr const char* what = "whether pods are single replicas of their controllers";
  std::set<std::string> owners;
  for (const k8s::Pod& pod : leaving_) {
    if (!drain::is_guarded(pod) || !owners.insert(pod.controller->uid).second) continue;
    if (owners.size() > most_controllers) continue;
    auto controller = co_await controller_of(pod);
    if (!controller) co_return not_known(what, controller.error());
    if (*controller) asked_.controllers.emplace(pod.controller->uid, **std::move(controller));
  }
  if (owners.size() > most_controllers)
    asked_.problems.push_back(
        fmt::format("whether {} of the {} controllers have a single replica: explain reads at most {} of them",
                    owners.size() - most_controllers, owners.size(), most_controllers));
}

Task<> ExplainJob::act(std::string node) {
  NodeFacts facts;
  CO_TRY(facts.node, co_await tools_.client.get_node(node, deadline()));
  facts.fleet = co_await read_facts(tools_.client, settings_.haulout_namespace(), deadline());
  // List the VolumeAttachments before the pods. The list of pods then has every pod that uses one of them, also a pod
  // that was created in between, and none of these volumes looks unused.
  auto attachments = co_await tools_.client.list<k8s::VolumeAttachment>(
      {.limit = k8s::usual_page}, deadline(), k8s::longest_page,
      [node](const k8s::VolumeAttachment& attachment) { return attachment.node_name == node; });
  auto pods = co_await tools_.client.list_pods_on(node, deadline());
  if (pods)
    facts.pods = std::move(pods->items);
  else
    facts.pods_problem = printable(pods.error().message());
  auto budgets = co_await tools_.client.list<k8s::PodDisruptionBudget>({.limit = k8s::usual_page}, deadline());
  if (budgets)
    facts.budgets = std::move(budgets->items);
  else
    facts.budgets_problem = printable(budgets.error().message());
  facts.daemon_sets = co_await look_up_daemon_sets(facts.pods);
  if (settings_.people.check_fit) co_await check_fit(facts);

  Questions questions(tools_.client, facts, [this] { return deadline(); }, tools_.client.server_now());
  facts.asked = co_await questions.ask(std::move(attachments));

  const Explanation explanation = explain(facts, tools_.client.server_now());
  if (settings_.output == OutputFormat::json) {
    tools_.out.write(explanation_json(explanation));
  } else {
    for (const std::string& line : explanation_text(explanation)) tools_.console.say(line);
  }
  co_return Result<>();
}

asio::awaitable<void> ExplainJob::check_fit(NodeFacts& facts) {
  facts.fit_asked = true;
  if (facts.pods_problem) co_return;
  auto fits = co_await placement::check_fit(
      tools_.client, {leaving_pods(facts, tools_.client.server_now()), {facts.node.name}}, settings_.drain.page_size,
      saturating_add(tools_.clock.now(), placement::fit_limit));
  if (fits)
    facts.fits = *std::move(fits);
  else
    facts.fits_problem = printable(fits.error().message());
}

asio::awaitable<drain::DaemonSetStates> ExplainJob::look_up_daemon_sets(std::vector<k8s::Pod> pods) {
  drain::DaemonSetStates states;
  for (const k8s::Pod& pod : pods) {
    if (!drain::can_look_up_daemon_set(pod) || states.contains(pod.controller->uid)) continue;
    const auto found = co_await tools_.client.get<k8s::DaemonSet>(pod.ns, pod.controller->name, deadline());
    drain::DaemonSetState state = drain::DaemonSetState::unknown;
    if (found)
      state = found->uid == pod.controller->uid ? drain::DaemonSetState::exists : drain::DaemonSetState::gone;
    else if (k8s::is_gone(found.error()))
      state = drain::DaemonSetState::gone;
    states.emplace(pod.controller->uid, state);
  }
  co_return states;
}

}  // namespace haulout::cli
