#include "agent/service/agent_service.hpp"

#include "agent/assembly/make_backend.hpp"
#include "agent/assembly/make_host.hpp"
#include "agent/dbus/bus_address.hpp"
#include "agent/exit_code.hpp"
#include "agent/gates/max_unavailable.hpp"
#include "agent/lifecycle/agent.hpp"
#include "agent/service/agent_setup.hpp"
#include "agent/slots/lease_slots.hpp"
#include "agent/transports.hpp"

namespace haulout::agent {
namespace {

using boost::asio::awaitable;

class Silence final : public drain::DrainObserver {
  void on_event(const drain::Event&) override {}
};

}  // namespace

class AgentService::Impl {
 public:
  explicit Impl(ServiceInputs inputs)
      : process_(inputs.process),
        config_(inputs.config),
        log_(inputs.log),
        transport_(inputs.api, process_.clock, log_, ledger_, std::nullopt),
        client_(transport_, process_.clock, {k8s::FieldValidation::warn, drain::Options{}.page_size}),
        root_(config_.host_root),
        bus_(process_.executor, process_.clock, process_.rng,
             system_bus_addresses(config_.host_root, bus_variable().empty() ? nullptr : bus_variable().c_str())) {}

  awaitable<void> run() {
    auto made = co_await begin();
    if (!made) {
      log_.write(Severity::error, made.error().message());
      exit_code_ = agent::exit_code(made.error());
      co_return;
    }
    co_await with_task_group([this](TaskGroup& group) {
      if (uses_bus(config_, backend_->name())) group.spawn(bus_.run());
      return agent_->run();
    });
  }

  int exit_code() const { return exit_code_; }

 private:
  std::string bus_variable() const { return process_.environment.get("DBUS_SYSTEM_BUS_ADDRESS"); }

  Task<> begin() {
    const HostAccess access{process_.executor, process_.clock, process_.rng, root_, bus_};
    CO_TRY(const FoundBackend found, find_backend(config_, root_));
    CO_TRY(MadeBackend made, make_backend(config_, found, access));
    backend_client_ = std::move(made.client);
    backend_ = std::move(made.backend);
    host_ = make_host(config_, access);
    CO_TRY(const k8s::Node node, co_await client_.get_node(config_.node_name, process_.clock.now() + patience));
    own_ = {config_.node_name, node.uid};
    slots_ = std::make_unique<LeaseSlots>(client_, process_.rng, own_, slots_options());
    agent_ = std::make_unique<Agent>(parts(), options());
    co_return Result<>();
  }

  LeaseSlotsOptions slots_options() const {
    LeaseSlotsOptions options;
    options.ns = config_.ns;
    options.pool = config_.pool;
    const MaxUnavailable limit = *parse_max_unavailable(config_.max_unavailable);
    options.limit = [limit](std::size_t nodes) { return limit.of(nodes); };
    return options;
  }

  AgentParts parts() {
    return {client_,
            process_.rng,
            *host_,
            *backend_,
            *slots_,
            [](const auto&, const auto&, const auto&, WallTime) { return GateAnswer{}; },
            silence_,
            [this](const Status& status) {
              log_.write(Severity::notice, std::string(to_string(status.state)),
                         {{"reason", status.reason}, {"message", status.message}});
            }};
  }

  AgentOptions options() const { return {config_.node_name, drain_options_of(config_), times_of(config_)}; }

  static constexpr Duration patience = std::chrono::seconds(30);

  Process& process_;
  const AgentConfig& config_;
  Log& log_;
  RequestLedger ledger_;
  WatchedTransport transport_;
  k8s::Client client_;
  HostRoot root_;
  Bus bus_;
  std::unique_ptr<http::Client> backend_client_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Host> host_;
  OwnNode own_;
  std::unique_ptr<Slots> slots_;
  Silence silence_;
  std::unique_ptr<Agent> agent_;
  int exit_code_ = exit_connection;
};

AgentService::AgentService(ServiceInputs inputs) : impl_(std::make_unique<Impl>(inputs)) {}
AgentService::~AgentService() = default;
awaitable<void> AgentService::run() {
  return impl_->run();
}
int AgentService::exit_code() const {
  return impl_->exit_code();
}

}  // namespace haulout::agent
