#include "cli/people/explain_job.hpp"

#include "base/text.hpp"
#include "cli/people/facts.hpp"
#include "cli/people/questions.hpp"
#include "k8s/status.hpp"
#include "placement/fit.hpp"

namespace haulout::cli {
namespace asio = boost::asio;

Task<> ExplainJob::act(std::string node) {
  NodeFacts facts;
  CO_TRY(facts.node, co_await tools_.client.get_node(node, deadline()));
  facts.fleet = co_await read_facts(tools_.client, settings_.haulout_namespace(), deadline());
  // Listed before the pods. A pod that arrives in between is then in the list of pods, so that its volumes do not look
  // unused.
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
