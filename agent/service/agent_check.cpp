#include "agent/service/agent_check.hpp"

#include <fmt/format.h>

#include "agent/lifecycle/reboot_need.hpp"
#include "agent/node/record.hpp"
#include "agent/service/warnings.hpp"
#include "base/text.hpp"

namespace haulout::agent {
namespace {

using boost::asio::awaitable;

// Time limit of each request, so that one request without an answer does not use up the time of the others.
constexpr Duration answer_limit = std::chrono::seconds(10);

std::string words_of(const Pending& pending) {
  switch (pending.need) {
    case Need::yes: return "a reboot is needed: " + joined(pending.reasons, ", ");
    case Need::no: return "no reboot is needed";
    case Need::unknown: return pending.problem;
  }
  return "";
}

}  // namespace

void AgentCheck::say(Mark mark, std::string_view subject, std::string_view text) {
  const auto word_of = [](Mark of) -> std::string_view {
    switch (of) {
      case Mark::ok: return "ok";
      case Mark::note: return "note";
      case Mark::off: return "off";
      case Mark::failed: return "FAILED";
    }
    return "";
  };
  print_(fmt::format("{:<7} {:<12} {}", word_of(mark), subject, text));
  if (mark == Mark::failed) failed_ = true;
}

void AgentCheck::start_failed(const Error& error) {
  say(Mark::failed, "start", error.message());
}

awaitable<void> AgentCheck::run(AgentWhole& whole, const AgentConfig& config) {
  check_authority(whole);
  const Pending pending = co_await check_backend(whole, config);
  co_await check_updates(whole);
  const Result<std::string> boot_id = whole.host().boot_id();
  say(boot_id ? Mark::ok : Mark::failed, "host", boot_id ? "boot id " + *boot_id : boot_id.error().message());
  co_await check_reboot(whole);
  check_hooks(whole);
  const auto node = co_await whole.client().get_node(whole.authority().node.name, soon());
  if (!node) say(Mark::failed, "gate", "the gates cannot be evaluated: " + node.error().message());
  if (node && boot_id && has_foreign_boot_id(*node, *boot_id))
    say(Mark::failed, "host", foreign_boot_id(*node, *boot_id));
  if (node) co_await check_gates(whole, config, *node, pending);
  co_await check_rivals(whole);
}

void AgentCheck::check_authority(AgentWhole& whole) {
  const Authority& authority = whole.authority();
  say(Mark::ok, "node", authority.node.name);
  say(Mark::ok, "authority", fmt::format("{}, as {}", to_string(authority.kind), authority.user));
  for (const std::string& reason : authority.passed_over) say(Mark::note, "authority", reason);
  if (const auto weak = weakness(authority.kind)) say(Mark::note, "authority", *weak);
  for (const std::string& off : authority.switched_off) say(Mark::off, "rights", off);
  say(Mark::ok, "slots", whole.slots().name());
}

awaitable<Pending> AgentCheck::check_backend(AgentWhole& whole, const AgentConfig& config) {
  Pending pending = co_await whole.backend().pending(soon());
  say(pending.need == Need::unknown ? Mark::failed : Mark::ok, "backend",
      whole.backend().name() + ": " + words_of(pending));
  const auto version = co_await whole.backend().booted(soon());
  if (!version) say(Mark::failed, "version", "the running version is unknown: " + version.error().message());
  std::vector<std::string> by_version;  // the options that need versions
  if (!config.ramp.empty()) by_version.emplace_back("ramp");
  if (config.halt_after > 0) by_version.emplace_back("halt-after");
  if (version && !by_version.empty() && (version->empty() || !whole.backend().versions_are_shared()))
    say(Mark::note, by_version.front(),
        fmt::format("{} {} no effect, because versions of back end {} cannot be compared between nodes: only "
                    "max-unavailable limits how many nodes are updated at a time; remove {}",
                    joined(by_version, " and "), by_version.size() == 1 ? "has" : "have", whole.backend().name(),
                    by_version.size() == 1 ? by_version.front() : "both"));
  co_return pending;
}

awaitable<void> AgentCheck::check_updates(AgentWhole& whole) {
  if (!whole.updater()) co_return;
  const Updates updates = co_await whole.updater()->look(soon());
  say(updates.need == Need::unknown ? Mark::failed : Mark::ok, "update", agent::words_of(updates));
  const auto blocked = co_await whole.updater()->blocked_by(soon());
  if (!blocked) say(Mark::failed, "update", blocked.error().message());
  if (blocked && !blocked->empty()) say(Mark::note, "update", *blocked);
}

awaitable<void> AgentCheck::check_reboot(AgentWhole& whole) {
  const auto methods = whole.host().reboot_methods();
  if (methods.empty())
    co_return say(Mark::off, "reboot",
                  "reboot-method is none: another program or a person must reboot this machine when the state of its "
                  "node is ready");
  auto can = co_await whole.host().can_reboot(soon());
  say(can ? Mark::ok : Mark::failed, "reboot",
      can ? "permitted by " + methods.front() + "; methods, in this order: " + joined(methods, ", ")
          : can.error().message());
}

void AgentCheck::check_hooks(AgentWhole& whole) {
  for (const HookPoint point : all_hook_points) {
    auto files = whole.hooks().list(point);
    if (!files) say(Mark::failed, "hooks", files.error().message());
    if (!files) continue;
    if (!files->names.empty())
      say(Mark::ok, "hooks", std::string(to_string(point)) + ": " + joined(files->names, ", "));
    for (const std::string& skipped : files->skipped) say(Mark::note, "hooks", skipped);
  }
}

awaitable<void> AgentCheck::check_gates(AgentWhole& whole, const AgentConfig& config, const k8s::Node& node,
                                        const Pending& pending) {
  say(Mark::ok, "pool", words_of_pool(config, node));
  GateQuestion question{.node = node, .pending = pending, .when = GateQuestion::When::any_time};
  const GateAnswer answer = co_await whole.gates().ask(std::move(question), soon());
  for (const Gate& gate : answer.gates) {
    const Mark mark = gate.verdict == Gate::Verdict::off ? Mark::off : gate.closed() ? Mark::note : Mark::ok;
    say(mark, "gate", gate.name + ": " + gate.message);
  }
  const Cautions cautions = co_await find_cautions(whole.client(), config, whole.host_access().root, node, soon());
  for (const std::string& caution : cautions.config) say(Mark::note, "config", caution);
  for (const std::string& caution : cautions.hooks) say(Mark::note, "hooks", caution);
}

awaitable<void> AgentCheck::check_rivals(AgentWhole& whole) {
  const Rivals rivals =
      co_await find_rivals(whole.client(), whole.authority().node.name, whole.host_access(), whole.uses_bus(), soon());
  for (const std::string& rival : rivals.found) say(Mark::note, "rival", rival);
  for (const std::string& problem : rivals.problems) say(Mark::note, "rivals", problem);
}

TimePoint AgentCheck::soon() const {
  return clock_.now() + answer_limit;
}

}  // namespace haulout::agent
