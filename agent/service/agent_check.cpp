// `haulout agent --check`: tries everything that the agent will need, without changing anything.
#include <fmt/format.h>

#include "agent/node/boot_marks.hpp"
#include "agent/process/exit_code.hpp"
#include "agent/service/agent_service.hpp"
#include "agent/service/cautions.hpp"
#include "agent/service/rivals.hpp"
#include "base/text.hpp"

namespace haulout::agent {
namespace {

using boost::asio::awaitable;

constexpr Duration start_limit = std::chrono::seconds(30);
// Limit for each question, so that one unanswered question does not use up the time of the others.
constexpr Duration answer_limit = std::chrono::seconds(10);

enum class Mark { ok, note, off, failed };

std::string_view word_of(Mark mark) {
  switch (mark) {
    case Mark::ok: return "ok";
    case Mark::note: return "note";
    case Mark::off: return "off";
    case Mark::failed: return "FAILED";
  }
  return "";
}

std::string line_of(Mark mark, std::string_view subject, std::string_view text) {
  return fmt::format("{:<7} {:<12} {}", word_of(mark), subject, text);
}

Mark mark_of(const Gate& gate) {
  if (gate.verdict == Gate::Verdict::off) return Mark::off;
  return gate.closed() ? Mark::note : Mark::ok;
}

std::string words_of(const Pending& pending) {
  switch (pending.need) {
    case Need::yes: return "a reboot is needed: " + joined(pending.reasons, ", ");
    case Need::no: return "no reboot is needed";
    case Need::unknown: return pending.problem;
  }
  return "";
}

}  // namespace

awaitable<void> AgentService::check() {
  co_await with_task_group([this](TaskGroup& group) { return check_all(group); });
}

awaitable<void> AgentService::check_all(TaskGroup& group) {
  const auto soon = [this] { return in_.process.clock.now() + answer_limit; };
  const auto tell = [this](Mark mark, std::string_view subject, std::string_view text) {
    say(line_of(mark, subject, text));
    if (mark == Mark::failed) exit_code_ = std::max(exit_code_, exit_not_done);
  };
  auto begun = co_await begin(group, try_once(in_.process.clock.now() + start_limit));
  if (!begun) {
    failed(begun.error());
    tell(Mark::failed, "start", begun.error().message());
    co_return;
  }

  const Authority& authority = whole_->authority();
  tell(Mark::ok, "node", authority.node.name);
  tell(Mark::ok, "authority", fmt::format("{}, as {}", to_string(authority.kind), authority.user));
  for (const std::string& reason : authority.passed_over) tell(Mark::note, "authority", reason);
  if (const auto weak = weakness(authority.kind)) tell(Mark::note, "authority", *weak);
  for (const std::string& off : authority.switched_off) tell(Mark::off, "rights", off);
  tell(Mark::ok, "slots", whole_->slots().name());

  const Pending pending = co_await whole_->backend().pending(soon());
  tell(pending.need == Need::unknown ? Mark::failed : Mark::ok, "backend",
       whole_->backend().name() + ": " + words_of(pending));
  const auto version = co_await whole_->backend().booted(soon());
  if (!version) tell(Mark::failed, "version", "the running version is unknown: " + version.error().message());
  auto boot_id = whole_->host().boot_id();
  tell(boot_id ? Mark::ok : Mark::failed, "host", boot_id ? "boot id " + *boot_id : boot_id.error().message());
  const auto methods = whole_->host().reboot_methods();
  if (methods.empty()) {
    tell(Mark::off, "reboot", "another program or a person reboots this machine when it is ready");
  } else {
    auto can = co_await whole_->host().can_reboot(soon());
    tell(can ? Mark::ok : Mark::failed, "reboot",
         can ? "permitted by " + methods.front() + "; ways: " + joined(methods, ", ") : can.error().message());
  }
  for (const HookPoint point : all_hook_points) {
    auto files = whole_->hooks().list(point);
    if (!files) tell(Mark::failed, "hooks", files.error().message());
    if (!files) continue;
    if (!files->names.empty())
      tell(Mark::ok, "hooks", std::string(to_string(point)) + ": " + joined(files->names, ", "));
    for (const std::string& skipped : files->skipped) tell(Mark::note, "hooks", skipped);
  }
  auto node = co_await whole_->client().get_node(authority.node.name, soon());
  if (!node) tell(Mark::failed, "gate", "the gates cannot be evaluated: " + node.error().message());
  if (node && boot_id && has_foreign_boot_id(*node, *boot_id))
    tell(Mark::failed, "host", foreign_boot_id(*node, *boot_id));
  if (node) {
    tell(Mark::ok, "pool", words_of_pool(in_.config, *node));
    GateQuestion question{.node = *node, .pending = pending, .when = GateQuestion::When::any_time};
    const GateAnswer answer = co_await whole_->gates().ask(std::move(question), soon());
    for (const Gate& gate : answer.gates) tell(mark_of(gate), "gate", gate.name + ": " + gate.message);
    const Cautions cautions =
        co_await find_cautions(whole_->client(), in_.config, whole_->host_access().root, *node, soon());
    for (const std::string& caution : cautions.config) tell(Mark::note, "config", caution);
    for (const std::string& caution : cautions.hooks) tell(Mark::note, "hooks", caution);
  }
  const Rivals rivals =
      co_await find_rivals(whole_->client(), authority.node.name, whole_->host_access(), whole_->uses_bus(), soon());
  for (const std::string& rival : rivals.found) tell(Mark::note, "rival", rival);
  for (const std::string& problem : rivals.problems) tell(Mark::note, "rivals", problem);
}

}  // namespace haulout::agent
