#include "agent/backends/image_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/scope_exit.hpp"
#include "base/text.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Interval between two looks for a new image. A look asks a registry or a repository.
constexpr Duration look_interval = std::chrono::hours(1);
// Pause before the updater looks again whether another program of it has ended.
constexpr Duration busy_pause = std::chrono::seconds(1);

HostProgram host_program(const ToolCommand& command, std::string description) {
  HostProgram program{.program = command.argv.front(), .description = std::move(description)};
  program.args.assign(command.argv.begin() + 1, command.argv.end());
  program.env = {{"LC_ALL", "C"}};
  return program;
}

bool is_answer(const ToolCommand& command, const ProgramEnd& end) {
  return std::find(command.answers.begin(), command.answers.end(), end.status) != command.answers.end();
}

}  // namespace

Task<ToolAnswers> ask_tool(HostPrograms& programs, Clock& clock, std::vector<ToolCommand> commands,
                           TimePoint deadline) {
  ToolAnswers answers;
  for (const ToolCommand& command : commands) {
    HostProgram program = host_program(command, "Haulout asks " + command.argv.front());
    program.unit = fmt::format("haulout-look-{:x}-{}-{}.service", clock.wall_now().time_since_epoch().count(),
                               command.argv.front().substr(command.argv.front().rfind('/') + 1), answers.size());
    program.keeps_output = true;
    CO_TRY(ProgramEnd end, co_await programs.run(std::move(program), deadline));
    if (!end.ours || !is_answer(command, end))
      co_return Error(Errc::unavailable, fmt::format("{}: {}", fmt::join(command.argv, " "), end.how));
    answers.push_back(std::move(end));
  }
  co_return std::move(answers);
}

ImageBackend::ImageBackend(ImageTool tool, HostRoot root, HostPrograms& programs, Clock& clock, Rng& rng)
    : tool_(std::move(tool)),
      root_(std::move(root)),
      programs_(programs),
      clock_(clock),
      rng_(rng),
      watch_(root_, tool_.hints) {}

Task<Images> ImageBackend::images(TimePoint deadline) {
  CO_TRY(const ToolAnswers answers, co_await ask_tool(programs_, clock_, tool_.status, deadline));
  auto release = read_os_release(root_);
  if (!release) co_return std::move(release).error();
  co_return tool_.read_images(answers, release->value_or(OsRelease()));
}

asio::awaitable<Pending> ImageBackend::pending(TimePoint deadline) {
  watch_.arm(co_await asio::this_coro::executor);
  auto found = co_await images(deadline);
  if (!found) co_return Pending{.problem = found.error().message()};
  next_is_shared_ = found->next_is_shared;
  if (found->next.empty()) co_return Pending{.need = Need::no};
  co_return Pending{.need = Need::yes, .reasons = {"staged: " + found->next}, .target = found->next};
}

Task<std::string> ImageBackend::booted(TimePoint deadline) {
  CO_TRY(Images found, co_await images(deadline));
  co_return std::move(found.booted);
}

Task<> ImageBackend::apply(std::string, TimePoint) {
  co_return Result<>();
}

asio::awaitable<void> ImageBackend::changed() {
  return watch_.changed(clock_, rng_);
}

ImageUpdater::ImageUpdater(ImageTool tool, Backend& backend, HostPrograms& programs, Clock& clock, Rng& rng)
    : tool_(std::move(tool)), backend_(backend), programs_(programs), clock_(clock), rng_(rng) {}

asio::awaitable<Updates> ImageUpdater::look(TimePoint deadline) {
  auto found = co_await offer_alone(deadline);
  if (found) co_return *std::move(found);
  co_return Updates{.problem = "it is unknown whether an update waits: " + found.error().message()};
}

Task<> ImageUpdater::wait_for_others(TimePoint deadline) {
  while (busy_) {
    if (clock_.now() >= deadline)
      co_return Error(Errc::timeout, "another command of the agent for " + tool_.name + " did not end in time");
    co_await clock_.sleep_until(std::min(deadline, clock_.now() + busy_pause));
  }
  co_return Result<>();
}

Task<Updates> ImageUpdater::offer_alone(TimePoint deadline) {
  CO_CHECK(co_await wait_for_others(deadline));
  busy_ = true;
  const ScopeExit done([this] { busy_ = false; });
  CO_TRY(const std::string who, co_await blocked_by(deadline));
  if (!who.empty()) co_return Error(Errc::unavailable, who);
  co_return co_await offer(deadline);
}

Task<Updates> ImageUpdater::offer(TimePoint deadline) {
  CO_TRY(ToolAnswers answers, co_await ask_tool(programs_, clock_, tool_.look, deadline));
  if (tool_.look_closer != nullptr) {
    auto commands = tool_.look_closer(answers);
    if (!commands) co_return std::move(commands).error();
    CO_TRY(ToolAnswers closer, co_await ask_tool(programs_, clock_, *std::move(commands), deadline));
    std::move(closer.begin(), closer.end(), std::back_inserter(answers));
  }
  auto updates = tool_.read_offer(answers);
  if (!updates || updates->need != Need::yes) co_return updates;
  const Pending staged = co_await backend_.pending(deadline);
  if (staged.need == Need::unknown) co_return Error(Errc::unavailable, staged.problem);
  CO_TRY(const std::string booted, co_await backend_.booted(deadline));
  // A tool without versions does not show whether the staged image is the offered one; it counts as the offered one.
  const bool in_place = staged.need == Need::yes && (updates->target.empty() || updates->target == staged.target);
  if (in_place || (!tool_.offer_differs && updates->target == booted)) co_return Updates{.need = Need::no};
  if (updates->target.empty()) co_return updates;
  std::string words = fmt::format("{} to {}", booted, updates->target);
  if (!updates->first.empty()) words += fmt::format(" ({})", joined(updates->first, ", "));
  updates->first = {std::move(words)};
  co_return updates;
}

asio::awaitable<void> ImageUpdater::changed() {
  co_await clock_.sleep_until(next_recheck(clock_, rng_, look_interval));
}

Task<> ImageUpdater::download(TimePoint) {
  co_return Result<>();
}

Task<std::string> ImageUpdater::blocked_by(TimePoint deadline) {
  CO_TRY(const bool runs, co_await programs_.runs(update_unit, deadline));
  co_return runs ? fmt::format("{}, which an earlier agent has started, still stages an image", update_unit)
                 : std::string();
}

Task<> ImageUpdater::stage(TimePoint deadline) {
  CO_CHECK(co_await wait_for_others(deadline));
  busy_ = true;
  const ScopeExit done([this] { busy_ = false; });
  co_return co_await run_update_program(programs_, clock_, host_program(tool_.stage, "Haulout stages an image"),
                                        tool_.stage.answers, deadline);
}

Task<> ImageUpdater::install(TimePoint deadline) {
  const auto found = co_await offer_alone(deadline);
  if (!found) co_return found.error();
  if (found->need == Need::no) co_return Result<>();
  CO_CHECK(co_await stage(deadline));
  const Pending staged = co_await backend_.pending(deadline);
  if (staged.need == Need::unknown) co_return Error(Errc::unavailable, staged.problem);
  if (staged.need == Need::yes) co_return Result<>();
  co_return Error(Errc::unavailable, fmt::format("{} reported success, but no image is staged for the next boot",
                                                 fmt::join(tool_.stage.argv, " ")));
}

}  // namespace haulout::agent
