#include "cli/people/facts.hpp"

#include "agent/slots/slot_rules.hpp"
#include "base/text.hpp"
#include "cli/people/change.hpp"
#include "k8s/status.hpp"

namespace haulout::cli {

boost::asio::awaitable<FleetFacts> read_facts(k8s::Client& client, std::string ns, TimePoint deadline) {
  FleetFacts facts;
  // Every Lease with a pool label is a slot.
  auto turns = co_await client.list<k8s::Lease>(
      {.label_selector = std::string(agent::pool_label), .limit = k8s::usual_page, .ns = ns}, deadline);
  if (turns)
    facts.turns = std::move(turns->items);
  else
    facts.turns_problem = printable(turns.error().message());
  auto map = co_await client.get<k8s::ConfigMap>(ns, std::string(config_map_name), deadline);
  if (map)
    facts.entries = std::move(map->data);
  else if (!k8s::is_gone(map.error()))
    facts.entries_problem = printable(map.error().message());
  co_return facts;
}

}  // namespace haulout::cli
