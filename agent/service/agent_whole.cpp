#include "agent/service/agent_whole.hpp"

#include <unistd.h>

#include "agent/process/process.hpp"
#include "agent/report/service_manager.hpp"
#include "agent/service/options_of_config.hpp"

namespace haulout::agent {
namespace {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? std::string(name) : std::string();
}

ReporterOptions reporter_options(const Authority& authority) {
  return {.node = authority.node.name,
          .instance = authority.pod_name.empty() ? host_name() : authority.pod_name,
          .version = std::string(version())};
}

}  // namespace

Task<std::unique_ptr<AgentWhole>> AgentWhole::make(Surroundings around, Authority authority, TimePoint deadline) {
  std::unique_ptr<AgentWhole> whole(new AgentWhole(around, std::move(authority)));
  CO_CHECK(co_await whole->assemble(deadline));
  co_return whole;
}

AgentWhole::AgentWhole(Surroundings around, Authority authority)
    : around_(around),
      authority_(std::move(authority)),
      transport_(around.api, authority_.impersonated_node()),
      client_(transport_, around.process.clock,
              {k8s::FieldValidation::warn, drain::Options{}.page_size, k8s::most_memory_of_agents}),
      reporter_(reporter_parts(), reporter_options(authority_)),
      memory_(around.process.executor, around.process.clock),
      root_(around.config.host_root) {}

ReporterParts AgentWhole::reporter_parts() {
  return {around_.process.executor, client_, around_.process.rng,
          [&log = around_.log](Severity severity, const std::string& message, const Log::Fields& fields) {
            log.write(severity, message, fields);
          },
          notify_service_manager};
}

HostAccess AgentWhole::host_access() {
  return {around_.process.executor, around_.process.clock, around_.process.rng, root_, around_.bus};
}

bool AgentWhole::uses_bus() const {
  return agent::uses_bus(around_.config, backend_.backend->name(), root_);
}

Task<> AgentWhole::assemble(TimePoint deadline) {
  const AgentConfig& config = around_.config;
  CO_TRY(const FoundBackend found, find_backend(config, root_));
  CO_TRY(backend_, make_backend(config, found, host_access()));
  CO_TRY(updater_, make_updater(config, found, host_access(), *backend_.backend));
  host_ = make_host(config, host_access());
  CO_TRY(hooks_, make_hooks(config, host_access()));
  if (uses_bus()) shutdown_ = std::make_unique<ShutdownInhibitor>(around_.bus, around_.process.rng);

  if (auto off = taint_without_effect(authority_.kind, config.waiting_taint))
    authority_.switched_off.push_back(*std::move(off));
  CO_CHECK(may_use_slots(authority_, config.slots));
  SlotsAccess access{around_.process.executor, client_, around_.process.rng, root_, authority_.node};
  access.cluster_nodes = authority_.cluster_nodes;
  CO_TRY(slots_, make_slots(config, access));
  CO_TRY(NodeGatesOptions gates, gates_of_config(config, authority_.node.name,
                                                 [&config](const k8s::Node& own) { return own_pool(config, own); }));
  CO_TRY(prometheus_,
         prometheus_transport(around_.process.executor, around_.process.clock, config, user_agent("agent")));
  gates_ = std::make_unique<NodeGates>(client_, around_.process.rng, prometheus_.get(), std::move(gates));

  observed_backend_ = std::make_unique<ObservedBackend>(
      *backend_.backend, [this](const Pending& pending) { reporter_.see_pending(pending); });
  observed_slots_ = std::make_unique<ObservedSlots>(*slots_.slots, [this](bool ours) { reporter_.see_turn(ours); });
  reporter_.see_authority(std::string(to_string(authority_.kind)));
  co_return Result<>();
}

AgentOptions AgentWhole::options() const {
  AgentOptions options = agent_options_of(around_.config);
  options.node = authority_.node.name;
  options.drain.own_pod_uid = authority_.pod_uid;
  suit_volumes(options.drain, authority_.rights.volumes);
  options.authority = to_string(authority_.kind);
  options.spread = spread_of(authority_.cluster_nodes);
  if (!may_change_taints(authority_.kind)) options.waiting_taint.reset();
  return options;
}

std::unique_ptr<Agent> AgentWhole::agent() {
  AgentParts parts{.client = client_,
                   .rng = around_.process.rng,
                   .host = *host_,
                   .backend = *observed_backend_,
                   .slots = *observed_slots_,
                   .gates = *gates_,
                   .drain_observer = reporter_,
                   .tell =
                       [this](const Status& status) {
                         reporter_.tell(status);
                         memory_.stir();
                       },
                   .hooks = hooks_.get(),
                   .warn = [this](const Status& status) { reporter_.warn(status); },
                   .node_is = [this](const std::string& uid) { authority_.node.uid = uid; },
                   .shutdown = shutdown_.get(),
                   .updater = updater(),
                   .recorded =
                       [this](const k8s::Node& node, const Record& record) {
                         const OwnPool pool = own_pool(around_.config, node);
                         reporter_.see_record(pool.name, record);
                       }};
  return std::make_unique<Agent>(std::move(parts), options());
}

}  // namespace haulout::agent
