#include "cli/people/people_job.hpp"

#include <unistd.h>

#include "agent/gates/pause.hpp"
#include "agent/process/process.hpp"
#include "agent/slots/slot_rules.hpp"
#include "base/text.hpp"
#include "cli/people/explain_job.hpp"
#include "cli/people/status_job.hpp"
#include "cli/people/steering_job.hpp"
#include "cli/terminal/console.hpp"
#include "k8s/status.hpp"

namespace haulout::cli {

namespace asio = boost::asio;

namespace {

// Limit for a completion of the shell. It is short, because a person has pressed Tab and waits.
constexpr Duration completion_limit = std::chrono::seconds(2);

// Returns a function that measures the terminal on stdout. The function is empty if stdout is not a terminal that can
// redraw.
std::function<Terminal()> terminal_of(const agent::Process& process) {
  if (!can_redraw(STDOUT_FILENO, process.environment)) return {};
  return [environment = process.environment] { return measure_terminal(STDOUT_FILENO, environment); };
}

}  // namespace

asio::awaitable<void> NodeByNodeJob::run() {
  auto nodes = co_await resolve_nodes(tools_, settings_, deadline());
  if (!nodes) {
    failed(nodes.error());
    co_return;
  }
  left_ = *std::move(nodes);
  while (!left_.empty()) {
    const std::string node = left_.front();
    auto done = co_await act(node);
    left_.erase(left_.begin());
    if (!done) failed(about_node(std::move(done).error(), node));
  }
}

int NodeByNodeJob::finish(std::optional<int> signal) {
  if (!signal) return exit_code_;
  if (!left_.empty()) tools_.console.warn("interrupted before the command was done with: " + joined(left_, ", "));
  return agent::exit_code_of_signal(*signal);
}

asio::awaitable<void> CompleteNodesJob::run() {
  const auto nodes = co_await tools_.client.list_nodes({}, saturating_add(tools_.clock.now(), completion_limit));
  if (!nodes) co_return;
  for (const k8s::Node& node : nodes->items) tools_.out.write(node.name + "\n");
}

std::unique_ptr<Job> make_people_job(agent::Process& process, Tools tools, const Settings& settings) {
  switch (settings.command) {
    case Command::status: return std::make_unique<StatusJob>(std::move(tools), settings, terminal_of(process));
    case Command::explain: return std::make_unique<ExplainJob>(std::move(tools), settings);
    case Command::request_reboot: return std::make_unique<RequestJob>(std::move(tools), settings);
    case Command::release: return std::make_unique<ReleaseJob>(std::move(tools), settings);
    case Command::complete_nodes: return std::make_unique<CompleteNodesJob>(std::move(tools));
    default: return std::make_unique<PauseJob>(std::move(tools), settings);
  }
}

boost::asio::awaitable<FleetFacts> read_facts(k8s::Client& client, std::string ns, TimePoint deadline) {
  FleetFacts facts;
  // Only the Leases of slots have a label with a pool, so this selector finds them all.
  auto turns = co_await client.list<k8s::Lease>(
      {.label_selector = std::string(agent::pool_label), .limit = k8s::usual_page, .ns = ns}, deadline);
  if (turns)
    facts.turns = std::move(turns->items);
  else
    facts.turns_problem = printable(turns.error().message());
  auto map = co_await client.get<k8s::ConfigMap>(ns, std::string(agent::pause_config_map), deadline);
  if (map)
    facts.entries = std::move(map->data);
  else if (!k8s::is_gone(map.error()))
    facts.entries_problem = printable(map.error().message());
  co_return facts;
}

}  // namespace haulout::cli
