#include "cli/drain/local_machine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "agent/hosts/host_command.hpp"
#include "base/plain_text.hpp"
#include "k8s/child_process.hpp"

namespace haulout::cli {

std::string node_name_of(const MachineIdentity& machine) {
  std::string name = machine.host_name;
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return name;
}

namespace {

// Returns what is wrong with one id, or an empty string.
std::string difference(const std::string& of_node, std::string_view field, const std::string& of_machine,
                       std::string_view file) {
  if (of_node == of_machine && !of_node.empty()) return {};
  return fmt::format("its {} is {}, but {} on this machine is {}", field, of_node.empty() ? "empty" : one_line(of_node),
                     file, of_machine.empty() ? "empty" : one_line(of_machine));
}

}  // namespace

std::string another_machine(const k8s::NodeMachine& node, const MachineIdentity& machine) {
  constexpr std::string_view machine_file = "/etc/machine-id";
  constexpr std::string_view boot_file = "/proc/sys/kernel/random/boot_id";
  if (const std::string wrong = difference(node.machine_id, "machineID", machine.machine_id, machine_file);
      !wrong.empty())
    return fmt::format(
        "the Node is not known to be this machine's: {}. Name the node of this machine, or run the command on the "
        "machine of the Node. Without --local it runs on any machine",
        wrong);
  if (const std::string wrong = difference(node.boot_id, "bootID", machine.boot_id, boot_file); !wrong.empty())
    return fmt::format(
        "the Node does not show this boot of the machine: {}. If the kubelet runs, try again when it has reported this "
        "boot. If the kubelet is not to run any more, use `haulout retire {}` without --local, and run the programs in "
        "{} by hand",
        wrong, one_line(node.name), clean_up_directory);
  return {};
}

namespace {

// Calls `said` with each whole line of the pieces that it gets.
class Lines {
 public:
  explicit Lines(std::function<void(std::string_view)> said) : said_(std::move(said)) {}
  void take(std::string_view piece) {
    for (;;) {
      const std::size_t end = piece.find('\n');
      rest_ += piece.substr(0, end);
      if (end == std::string_view::npos) break;
      flush();
      piece.remove_prefix(end + 1);
    }
    if (rest_.size() > longest) flush();
  }
  void finish() {
    if (!rest_.empty()) flush();
  }

 private:
  static constexpr std::size_t longest = 4096;  // a longer line is shown in parts

  void flush() {
    said_(rest_);
    rest_.clear();
  }

  std::function<void(std::string_view)> said_;
  std::string rest_;
};

class ThisMachine final : public LocalMachine {
 public:
  ThisMachine(Clock& clock, std::string root) : clock_(clock), root_(std::move(root)) {}

  Result<MachineIdentity> identity() override {
    MachineIdentity identity;
    identity.root = ::geteuid() == 0;
    char name[256] = {};
    if (::gethostname(name, sizeof name - 1) == 0) identity.host_name = name;
    auto machine_id = root_.read("/etc/machine-id", 1024);
    if (!machine_id) return std::move(machine_id).error();
    if (*machine_id) identity.machine_id = first_line(**machine_id);
    auto boot_id = agent::read_boot_id(root_);
    if (!boot_id) return std::move(boot_id).error();
    identity.boot_id = *std::move(boot_id);
    return identity;
  }

  Result<agent::ProgramFiles> programs() override {
    return agent::program_files(root_, clean_up_directory, {"a clean-up program", "no clean-up program is run"});
  }

  Task<> run(std::string program, ProgramEnvironment environment, TimePoint deadline,
             std::function<void(std::string_view)> said) override {
    CO_TRY(std::string path, root_.locate(fmt::format("{}/{}", clean_up_directory, program)));
    k8s::ChildCommand command;
    // One pipe for both streams keeps the order of their lines. `exec` lets the program itself get the signals.
    command.program = "/bin/sh";
    command.args = {"-c", "exec \"$0\" >&2", std::move(path)};
    command.env = std::move(environment);
    command.grace = grace;
    Lines lines(std::move(said));
    command.on_stderr = [&lines](std::string_view piece) { lines.take(piece); };
    auto outcome = co_await k8s::run_child(clock_, std::move(command), deadline);
    lines.finish();
    if (!outcome) co_return Error(outcome.error().code(), "it cannot be started: " + outcome.error().message());
    if (outcome->timed_out) co_return Error(Errc::timeout, "it exceeded its time limit and was stopped");
    if (outcome->exit_code == 0) co_return Result<>();
    outcome->error_tail = last_line(outcome->error_tail);
    co_return Error(Errc::unavailable, agent::describe_end(*outcome));
  }

 private:
  // What a program that exceeds its limit has left to end in order.
  static constexpr Duration grace = std::chrono::seconds(5);

  Clock& clock_;
  agent::HostRoot root_;
};

}  // namespace

std::unique_ptr<LocalMachine> this_machine(Clock& clock, std::string root) {
  return std::make_unique<ThisMachine>(clock, std::move(root));
}

}  // namespace haulout::cli
