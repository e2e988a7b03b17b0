#include "cli/drain/local_retirement.hpp"

#include <fmt/format.h>

#include "base/duration.hpp"
#include "base/text.hpp"

namespace haulout::cli {

namespace {

std::string_view words_of(drain::CleanUpResult result) {
  switch (result) {
    case drain::CleanUpResult::not_run:
    case drain::CleanUpResult::rehearsed: return "did not run";
    case drain::CleanUpResult::done: return "is done";
    case drain::CleanUpResult::failed: return "failed";
    case drain::CleanUpResult::interrupted: return "was stopped while it ran";
  }
  std::terminate();
}

}  // namespace

std::string clean_up_line(const std::vector<drain::CleanUpProgram>& programs) {
  std::vector<std::string> parts;
  parts.reserve(programs.size());
  for (const drain::CleanUpProgram& program : programs)
    parts.push_back(fmt::format("{} {}", program.name, words_of(program.result)));
  return joined(parts, ", ");
}

LocalRetirement::LocalRetirement(Tools tools, const Settings& settings, std::unique_ptr<LocalMachine> machine)
    : tools_(std::move(tools)), settings_(settings.retire), nodes_(settings.nodes), machine_(std::move(machine)) {}

Result<std::string> LocalRetirement::node_name() {
  auto identity = machine_->identity();
  if (!identity) return std::move(identity).error();
  identity_ = *std::move(identity);
  if (!identity_.root)
    return Error(Errc::invalid, "--local cleans up this machine, which only root may do: run it with sudo");
  if (!settings_.no_cleanup) {
    const auto files = machine_->programs();
    if (!files) return files.error();
    if (!files->skipped.empty())
      return Error(Errc::invalid,
                   "the clean-up would not be complete: " + joined(files->skipped, "; ") + ". Repair or remove it");
    if (files->names.empty())
      return Error(Errc::invalid,
                   fmt::format("{} has no program that cleans up this machine. For a machine that kubeadm has set up: "
                               "ln -s /usr/share/haulout/retire.d/50-kubeadm {}/. If the machine needs no clean-up, or "
                               "is cleaned up in another way: --no-cleanup",
                               clean_up_directory, clean_up_directory));
    for (const std::string& name : files->names) programs_.push_back({name, drain::CleanUpResult::not_run, {}});
  }
  node_ = nodes_.empty() ? node_name_of(identity_) : nodes_.front();
  if (node_.empty()) return Error(Errc::invalid, "this machine has no host name: name its node");
  return node_;
}

Task<std::string> LocalRetirement::prepare(k8s::Node node) {
  CO_TRY(const auto machine,
         co_await ask<k8s::NodeMachine>(tools_, saturating_add(tools_.clock.now(), call_limit), [&](TimePoint until) {
           return tools_.client.get<k8s::NodeMachine>(node.name, until);
         }));
  if (machine.name != node.name || machine.uid != node.uid)
    co_return std::string("its Node was replaced just now; run the command again");
  if (std::string wrong = another_machine(machine, identity_); !wrong.empty()) co_return wrong;
  uid_ = node.uid;
  for (drain::CleanUpProgram& program : programs_) {
    const auto checked = co_await run(program, true);
    if (checked) {
      program.result = drain::CleanUpResult::rehearsed;
      continue;
    }
    program.result = drain::CleanUpResult::failed;
    program.message = printable(checked.error().message());
    co_return fmt::format("clean-up program {} failed in its dry run: {}", program.name, program.message);
  }
  co_return std::string();
}

boost::asio::awaitable<std::optional<drain::Leftover>> LocalRetirement::clean_up(std::string uid) {
  if (uid != uid_)
    co_return drain::Leftover{"node " + node_, "it is another Node than the one that was checked before the drain"};
  for (drain::CleanUpProgram& program : programs_) program = {program.name, drain::CleanUpResult::not_run, {}};
  for (drain::CleanUpProgram& program : programs_) {
    begun_ = true;
    program.result = drain::CleanUpResult::interrupted;  // what it is if this call is cancelled
    program.message = "it was stopped by a signal to this command";
    const auto done = co_await run(program, false);
    program.result = done ? drain::CleanUpResult::done : drain::CleanUpResult::failed;
    program.message = done ? "" : printable(done.error().message());
    if (done) continue;
    co_return drain::Leftover{
        "clean-up program " + program.name,
        fmt::format("{}. The machine may be cleaned up in part. Repair the cause, then retire the node again: all "
                    "programs run again, from the first one",
                    program.message)};
  }
  co_return std::nullopt;
}

// Runs one program and shows its output. In the real run HAULOUT_DRY_RUN is empty, whatever this process inherited.
Task<> LocalRetirement::run(drain::CleanUpProgram& program, bool dry_run) {
  const std::string head = program.name + (dry_run ? " (dry run): " : ": ");
  const ProgramEnvironment environment = {{"HAULOUT_NODE", node_}, {"HAULOUT_DRY_RUN", dry_run ? "1" : ""}};
  const Duration limit = settings_.clean_up.limit;
  if (!dry_run) tools_.console.warn(fmt::format("{}begins", head));
  auto ended = co_await machine_->run(
      program.name, environment, saturating_add(tools_.clock.now(), limit),
      [this, head](std::string_view line) { tools_.console.warn(head + printable(std::string(line))); });
  if (!ended && ended.error().code() == Errc::timeout)
    co_return Error(Errc::timeout,
                    fmt::format("{} (--cleanup-timeout {})", ended.error().message(), format_duration(limit)));
  co_return ended;
}

}  // namespace haulout::cli
