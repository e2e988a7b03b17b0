#include "cli/drain/local_retirement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration.hpp"
#include "base/plain_text.hpp"
#include "base/text.hpp"
#include "drain/session.hpp"
#include "k8s/status.hpp"

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

// Fails if this process is where a clean-up would not clean the machine, or would make a second run impossible.
Result<> LocalRetirement::check_place() const {
  if (!identity_.root)
    return Error(Errc::invalid, "--local cleans up this machine, which only root may do: run it with sudo");
  if (!identity_.elsewhere.empty())
    return Error(Errc::invalid,
                 fmt::format("--local must run on the machine itself, not in a container or pod: {}. Run it in a shell "
                             "of the machine",
                             identity_.elsewhere));
  if (settings_.no_cleanup) return {};
  if (const auto file = deleted_by_clean_up(settings_.connection_files))
    return Error(Errc::invalid,
                 fmt::format("the clean-up may delete {}, which the connection needs: copy it to /root first, and name "
                             "the copy (--kubeconfig)",
                             one_line(*file)));
  return {};
}

Result<std::string> LocalRetirement::node_name() {
  auto identity = machine_->identity();
  if (!identity) return std::move(identity).error();
  identity_ = *std::move(identity);
  if (auto here = check_place(); !here) return std::move(here).error();
  if (auto claimed = machine_->claim(); !claimed) return std::move(claimed).error();
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

// Fails if the programs are not those that were rehearsed: a package or a person may have changed them since.
Result<> LocalRetirement::check_programs() const {
  const auto files = machine_->programs();
  if (!files) return files.error();
  if (!files->skipped.empty()) return Error(Errc::invalid, joined(files->skipped, "; "));
  const bool same = std::equal(files->names.begin(), files->names.end(), programs_.begin(), programs_.end(),
                               [](const std::string& name, const auto& program) { return name == program.name; });
  if (!same) return Error(Errc::invalid, fmt::format("there are now these programs: {}", joined(files->names, ", ")));
  return {};
}

Task<k8s::NodeMachine> LocalRetirement::look(Duration patience) {
  co_return co_await ask<k8s::NodeMachine>(tools_, saturating_add(tools_.clock.now(), patience), [&](TimePoint until) {
    return tools_.client.get<k8s::NodeMachine>(node_, until);
  });
}

// Returns why the Node is not known to be this machine's, or an empty string.
std::string LocalRetirement::objection(const k8s::NodeMachine& node) const {
  if (node.name != node_ || node.uid != uid_) return "another Node has its name now; run the command again";
  return another_machine(node, identity_);
}

Task<std::string> LocalRetirement::prepare(k8s::Node node) {
  node_ = node.name;
  uid_ = node.uid;
  CO_TRY(const auto machine, co_await look(call_limit));
  if (std::string wrong = objection(machine); !wrong.empty()) co_return wrong;
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

// Compares the ids of the machine again, because the UID of a Node stays the same when the kubelet of another machine
// with the same node name takes it over. If the Node is gone, the machine may be cleaned up.
boost::asio::awaitable<std::optional<drain::Leftover>> LocalRetirement::look_before() {
  const auto node = co_await look(drain::patience_with_others);
  if (!node && k8s::is_gone(node.error())) co_return std::nullopt;
  const std::string wrong = node ? objection(*node) : "it could not be read: " + printable(node.error().message());
  if (wrong.empty()) co_return std::nullopt;
  co_return drain::Leftover{"node " + node_, "the machine was not cleaned up: " + wrong};
}

// The clean-up has stopped this machine's kubelet, so other ids are those of another machine. A Node with another UID
// is not judged here: the look that follows does that.
boost::asio::awaitable<std::optional<drain::Leftover>> LocalRetirement::look_after() {
  const auto node = co_await look(drain::patience_with_others);
  if (!node && k8s::is_gone(node.error())) co_return std::nullopt;
  if (node && (node->uid != uid_ || another_machine(*node, identity_).empty())) co_return std::nullopt;
  co_return drain::Leftover{
      "node " + node_, node ? "it was not deleted, because it shows another machine now: a machine of this name uses it"
                            : "it was not deleted, because it could not be read: " + printable(node.error().message())};
}

boost::asio::awaitable<std::optional<drain::Leftover>> LocalRetirement::clean_up(std::string uid) {
  if (uid != uid_)
    co_return drain::Leftover{"node " + node_, "it is another Node than the one that was checked before the drain"};
  for (drain::CleanUpProgram& program : programs_) program = {program.name, drain::CleanUpResult::not_run, {}};
  if (auto wrong = co_await look_before()) co_return wrong;
  for (drain::CleanUpProgram& program : programs_) {
    if (const auto same = check_programs(); !same)
      co_return drain::Leftover{
          "clean-up program " + program.name,
          fmt::format("it was not run, because the programs have changed since their dry run: {}. "
                      "Retire the node again",
                      printable(same.error().message()))};
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
  co_return co_await look_after();
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
