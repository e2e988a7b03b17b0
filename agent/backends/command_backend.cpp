#include "agent/backends/command_backend.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/plain_text.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

bool contains(const std::vector<int>& codes, int code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

Pending unknown(const std::string& problem) {
  return {.need = Need::unknown, .problem = "sentinel command " + problem};
}

Pending answer_of(const k8s::ChildOutcome& outcome, const ExitCodes& codes, const std::string& program) {
  if (outcome.signal != 0 || outcome.too_much_output) return unknown(program + ": " + describe_end(outcome));
  const Need need = codes.need(outcome.exit_code);
  if (need == Need::no) return {.need = Need::no};
  if (need == Need::unknown)
    return unknown(fmt::format("{}: {}, which is neither yes ({}) nor no ({}) in sentinel-exit-codes", program,
                               describe_end(outcome), fmt::join(codes.yes, ","), fmt::join(codes.no, ",")));
  std::string reason = first_line(outcome.output);
  if (reason.empty()) reason = fmt::format("{} ended with exit status {}", program, outcome.exit_code);
  return {.need = Need::yes, .reasons = {std::move(reason)}};
}

}  // namespace

Need ExitCodes::need(int status) const {
  const bool says_yes = contains(yes, status);
  const bool says_no = contains(no, status);
  if (says_yes == says_no) return Need::unknown;
  return says_yes ? Need::yes : Need::no;
}

CommandBackend::CommandBackend(Clock& clock, Rng& rng, HostCommand command, Options options)
    : clock_(clock), rng_(rng), command_(std::move(command)), options_(std::move(options)) {}

asio::awaitable<Pending> CommandBackend::pending(TimePoint deadline) {
  const TimePoint own_deadline = saturating_add(clock_.now(), options_.time_limit);
  const auto outcome = co_await run_host_command(clock_, command_, std::min(deadline, own_deadline));
  if (!outcome) co_return unknown(outcome.error().message());
  co_return answer_of(*outcome, options_.codes, command_.program);
}

Task<std::string> CommandBackend::booted(TimePoint) {
  co_return std::string();
}

Task<> CommandBackend::apply(std::string, TimePoint) {
  co_return Result<>();
}

asio::awaitable<void> CommandBackend::changed() {
  co_await clock_.sleep_until(next_recheck(clock_, rng_, options_.interval));
}

}  // namespace haulout::agent
