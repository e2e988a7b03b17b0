#include "agent/service/agent_service.hpp"

#include <algorithm>

#include "agent/authority/authority.hpp"
#include "agent/dbus/bus.hpp"
#include "agent/lifecycle/release.hpp"
#include "agent/process/process.hpp"
#include "agent/report/service_manager.hpp"
#include "agent/service/agent_check.hpp"
#include "agent/service/warnings.hpp"
#include "base/text.hpp"
#include "k8s/status.hpp"
#include "retry/backoff.hpp"

namespace haulout::agent {
namespace {

using boost::asio::awaitable;

// Time limit of each search at the start: for other programs that reboot the machine, and for settings that may not
// have the expected effect (find_rivals() and find_cautions() in warnings.hpp).
constexpr Duration look_around_limit = std::chrono::seconds(30);
// Limit of the start in --check, until the AgentWhole is built. The requests of the checks after it have limits of
// their own (agent_check.cpp).
constexpr Duration check_limit = std::chrono::seconds(30);
// The scripts of the package wait 30 s for --release, so its limit is shorter.
constexpr Duration release_limit = std::chrono::seconds(25);
constexpr BackoffOptions patience{std::chrono::seconds(1), 2.0, std::chrono::seconds(30),
                                  BackoffOptions::Jitter::equal};

std::vector<std::string> bus_addresses(const ServiceInputs& in) {
  const std::string variable = in.process.environment.get("DBUS_SYSTEM_BUS_ADDRESS");
  return system_bus_addresses(in.config.host_root, variable.empty() ? nullptr : variable.c_str());
}

}  // namespace

AgentService::AgentService(ServiceInputs inputs)
    : in_(inputs),
      warnings_([this](const std::string& text) {
        in_.log.write(Severity::warning, "the API server warns", {{"text", text}});
      }),
      watched_(
          in_.api, in_.process.clock, in_.log,
          [this](const RequestEnd& request) {
            warnings_.see(request.warnings);
            if (!whole_) return;
            whole_->reporter().see_request(request);
            whole_->memory().stir();
          },
          std::nullopt),
      bus_(in_.process.executor, in_.process.clock, in_.process.rng, bus_addresses(in_)) {}

void AgentService::failed(const Error& error) {
  in_.log.write(Severity::error, error.message());
  exit_code_ = exit_code_of_service(error);
}

void AgentService::say(std::string_view line) {
  in_.process.out.write(printable(line) + "\n");
}

Task<std::unique_ptr<AgentWhole>> AgentService::try_once(TimePoint deadline) {
  CO_TRY(
      Authority authority,
      co_await find_authority(watched_, in_.process.clock,
                              {in_.config.authority, in_.config.node_name, in_.config.ns, in_.config.slots}, deadline));
  co_return co_await AgentWhole::make(surroundings(), std::move(authority), deadline);
}

Task<std::unique_ptr<AgentWhole>> AgentService::come_up() {
  Clock& clock = in_.process.clock;
  Backoff backoff(patience);
  StartPatience attempt;
  for (;;) {
    auto whole = co_await try_once(clock.now() + attempt.limit());
    if (whole || !k8s::is_transient(whole.error())) co_return whole;
    attempt.failed(whole.error());
    // The agent itself works even while the API server cannot be reached, so it reports to systemd that it is ready.
    notify_service_manager("READY=1");
    const std::string problem = "the API server gives no usable answer yet: " + whole.error().message();
    in_.log.write(Severity::warning, problem);
    notify_service_manager("STATUS=" + printable(problem));
    co_await clock.sleep_until(clock.now() + backoff.next(in_.process.rng, whole.error().retry_after));
  }
}

Task<> AgentService::begin(TaskGroup& group, Task<std::unique_ptr<AgentWhole>> coming) {
  CO_TRY(whole_, co_await std::move(coming));
  if (whole_->uses_bus()) group.spawn(bus_.run());
  co_return Result<>();
}

Task<> AgentService::serve_pages(TaskGroup& group) {
  if (in_.config.metrics_address.empty()) co_return Result<>();
  PageSources sources{.metrics = [this] { return whole_ ? whole_->reporter().metrics_text() : std::string(); },
                      .readiness =
                          [this] {
                            return whole_ ? whole_->reporter().readiness()
                                          : std::vector<Check>{{"api", "the API server has not answered yet"}};
                          }};
  CO_TRY(pages_,
         serve_status_pages(in_.process.executor, in_.process.clock, in_.config.metrics_address, std::move(sources)));
  group.spawn(pages_->run());
  co_return Result<>();
}

awaitable<void> AgentService::serve() {
  co_await with_task_group([this](TaskGroup& group) { return live(group); });
}

awaitable<void> AgentService::live(TaskGroup& group) {
  auto listening = co_await serve_pages(group);
  if (!listening) {
    failed(listening.error());
    co_return;
  }
  // Begin to feed the watchdog before come_up(), because one attempt to make the parts may take longer than the
  // watchdog's interval.
  if (const auto limit = watchdog_limit()) group.spawn(feed_watchdog(in_.process.clock, *limit));
  notify_service_manager("STATUS=asking the API server for the identity of this credential");
  auto begun = co_await begin(group, come_up());
  if (!begun) {
    failed(begun.error());
    co_return;
  }
  // Send READY=1 only now, so that a start that fails at once, for example because of a missing option, never counts as
  // ready. While the API server is unavailable, come_up() has sent it already.
  notify_service_manager("READY=1");
  const Authority& authority = whole_->authority();
  in_.log.write(Severity::notice, "managing node " + authority.node.name,
                {{"authority", std::string(to_string(authority.kind))},
                 {"user", authority.user},
                 {"backend", whole_->backend().name()},
                 {"slots", whole_->slots().name()}});
  for (const std::string& reason : authority.passed_over) in_.log.write(Severity::info, reason);
  if (const auto weak = weakness(authority.kind)) in_.log.write(Severity::warning, *weak);
  if (!authority.switched_off.empty())
    in_.log.write(Severity::warning, "some functions are off until the agent is restarted with more rights: " +
                                         joined(authority.switched_off, "; "));
  group.spawn(whole_->reporter().run());
  group.spawn(whole_->memory().run());
  group.spawn(tell_rivals());
  group.spawn(tell_cautions());
  if (ShutdownInhibitor* const shutdown = whole_->shutdown()) group.spawn(shutdown->run());
  const auto agent = whole_->agent();
  co_await agent->run();
}

awaitable<void> AgentService::tell_rivals() {
  const TimePoint deadline = in_.process.clock.now() + look_around_limit;
  const Rivals rivals = co_await find_rivals(whole_->client(), whole_->authority().node.name, whole_->host_access(),
                                             whole_->uses_bus(), deadline);
  for (const std::string& rival : rivals.found) in_.log.write(Severity::warning, rival);
  for (const std::string& problem : rivals.problems) in_.log.write(Severity::info, problem);
}

awaitable<void> AgentService::tell_cautions() {
  const TimePoint deadline = in_.process.clock.now() + look_around_limit;
  const Cautions cautions = co_await find_cautions(whole_->client(), in_.config, whole_->host_access().root,
                                                   whole_->authority().seen, deadline);
  for (const std::string& caution : cautions.config) in_.log.write(Severity::warning, caution);
  for (const std::string& caution : cautions.hooks) in_.log.write(Severity::warning, caution);
}

awaitable<void> AgentService::check() {
  co_await with_task_group([this](TaskGroup& group) { return check_all(group); });
}

awaitable<void> AgentService::check_all(TaskGroup& group) {
  AgentCheck checks(in_.process.clock, [this](std::string_view line) { say(line); });
  auto begun = co_await begin(group, try_once(in_.process.clock.now() + check_limit));
  if (begun) {
    co_await checks.run(*whole_, in_.config);
  } else {
    failed(begun.error());
    checks.start_failed(begun.error());
  }
  if (checks.failed()) exit_code_ = std::max(exit_code_, exit_not_done);
}

awaitable<void> AgentService::release() {
  co_await with_task_group([this](TaskGroup& group) { return release_all(group); });
}

awaitable<void> AgentService::release_all(TaskGroup& group) {
  const TimePoint deadline = in_.process.clock.now() + release_limit;
  auto begun = co_await begin(group, try_once(deadline));
  if (!begun) {
    failed(begun.error());
    co_return;
  }
  const ReleaseParts parts{whole_->client(), in_.process.rng, whole_->host(), whole_->slots()};
  const Released released = co_await agent::release(parts, whole_->authority().node.name, deadline);
  for (const std::string& line : released.done) say(line);
  for (const std::string& failure : released.failures) in_.log.write(Severity::error, failure);
  if (released.done.empty() && released.failures.empty())
    say("nothing to release: the Node has no labels, annotations, cordon or slot of an agent");
  if (released.failures.empty()) co_return;
  in_.log.write(Severity::error,
                "the node is not released completely: resolve these errors, and run haulout agent --release again");
  exit_code_ = exit_not_done;
}

}  // namespace haulout::agent
