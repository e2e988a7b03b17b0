#include "cli/drain/local_machine.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "agent/hosts/host_command.hpp"
#include "base/ascii.hpp"
#include "base/descriptor.hpp"
#include "base/plain_text.hpp"
#include "base/text.hpp"
#include "k8s/child_process.hpp"

namespace haulout::cli {

std::string node_name_of(const MachineIdentity& machine) {
  return lower_case(machine.host_name);
}

namespace {

// Returns what is wrong with one id, or an empty string.
std::string difference(const std::string& of_node, std::string_view field, const std::string& of_machine,
                       std::string_view file) {
  if (of_node == of_machine && !of_node.empty()) return {};
  return fmt::format("its {} is {}, but {} on this machine is {}", field, of_node.empty() ? "empty" : one_line(of_node),
                     file, of_machine.empty() ? "empty" : one_line(of_machine));
}

// Returns true if the Node shows an address of this machine.
bool shows_an_address(const k8s::NodeMachine& node, const MachineIdentity& machine) {
  return std::any_of(node.addresses.begin(), node.addresses.end(), [&](const std::string& address) {
    boost::system::error_code failure;
    const auto parsed = boost::asio::ip::make_address(address, failure);
    return !failure &&
           std::find(machine.addresses.begin(), machine.addresses.end(), parsed.to_string()) != machine.addresses.end();
  });
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
        "boot. If it must not run any more, use `haulout retire {}` without --local, and {}",
        wrong, one_line(node.name), by_hand);
  if (node.name != node_name_of(machine) && !shows_an_address(node, machine))
    return fmt::format(
        "the Node is not known to be this machine's: its name is not the host name {}, and none of its addresses ({}) "
        "is on this machine. Run the command on the machine of the Node",
        one_line(machine.host_name), one_line(joined(node.addresses, ", ")));
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

  // A program may write without pause, and a terminal is slow.
  static constexpr std::size_t most = std::size_t{1} << 20;

  void flush() {
    const bool was_shown = shown_ <= most;
    shown_ += rest_.size() + 1;
    if (shown_ <= most)
      said_(rest_);
    else if (was_shown)
      said_("more output is not shown");
    rest_.clear();
  }

  std::function<void(std::string_view)> said_;
  std::string rest_;
  std::size_t shown_ = 0;
};

// Returns why this process is in a container of the machine, or an empty string. `root` is the directory of the system.
// Containers often have the ids of their machine: toolbox and distrobox even link its /etc/machine-id.
std::string container_around(const std::string& root) {
  const std::filesystem::path top(root);
  for (const char* kind : {"mnt", "pid", "net", "cgroup", "user"}) {
    std::error_code failure;
    const auto own = std::filesystem::read_symlink(top / "proc/self/ns" / kind, failure);
    const auto first = failure ? own : std::filesystem::read_symlink(top / "proc/1/ns" / kind, failure);
    if (failure) return fmt::format("its namespaces cannot be compared with those of process 1: {}", failure.message());
    if (own != first) return fmt::format("it is in another namespace ({}) than process 1", kind);
  }
  for (const char* mark : {"run/.containerenv", ".dockerenv"}) {
    std::error_code failure;
    if (std::filesystem::exists(std::filesystem::symlink_status(top / mark, failure)))
      return fmt::format("/{} exists", mark);
  }
  const auto groups = agent::HostRoot(root).read("/proc/self/cgroup", std::size_t{64} * 1024);
  if (!groups || !*groups) return "its cgroup is unknown (/proc/self/cgroup)";
  for (const char* runtime : {"kubepods", "libpod", "docker-", "/docker/", "crio-", "cri-containerd-"})
    if ((*groups)->find(runtime) != std::string::npos)
      return fmt::format("its cgroup is that of a container ({})", runtime);
  return {};
}

std::vector<std::string> addresses_of_interfaces() {
  std::vector<std::string> all;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return all;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    boost::asio::ip::address address;
    if (each->ifa_addr->sa_family == AF_INET) {
      sockaddr_in v4{};
      std::memcpy(&v4, each->ifa_addr, sizeof v4);
      address = boost::asio::ip::address_v4(ntohl(v4.sin_addr.s_addr));
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      sockaddr_in6 v6{};
      std::memcpy(&v6, each->ifa_addr, sizeof v6);
      boost::asio::ip::address_v6::bytes_type bytes;
      std::memcpy(bytes.data(), v6.sin6_addr.s6_addr, bytes.size());
      address = boost::asio::ip::address_v6(bytes);
    } else {
      continue;
    }
    if (!address.is_loopback()) all.push_back(address.to_string());
  }
  ::freeifaddrs(first);
  return all;
}

// The environment of every clean-up program, besides the variables of the clean-up itself.
ProgramEnvironment plain_environment() {
  ProgramEnvironment all = {
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, {"HOME", "/root"}, {"LANG", "C.UTF-8"}};
  for (const char* name : {"TERM", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy",
                           "no_proxy", "all_proxy"})
    if (const char* value = std::getenv(name)) all.emplace_back(name, value);
  return all;
}

class ThisMachine final : public LocalMachine {
 public:
  ThisMachine(Clock& clock, std::string root) : clock_(clock), root_(std::move(root)) {}

  Result<MachineIdentity> identity() override {
    MachineIdentity identity;
    identity.root = ::geteuid() == 0;
    identity.elsewhere = container_around(root_.directory());
    identity.addresses = addresses_of_interfaces();
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

  Result<> claim() override {
    if (claim_.is_open()) return {};
    const std::string path = (root_.directory() == "/" ? "" : root_.directory()) + "/run/haulout-retire.lock";
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.is_open())
      return Error(Errc::unavailable, fmt::format("{}: {}", path, std::generic_category().message(errno)));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
      return Error(Errc::unavailable,
                   fmt::format("another `haulout retire --local`, or a program that it has started, still runs: wait "
                               "until it has ended (fuser {} shows it)",
                               path));
    claim_ = std::move(file);
    return {};
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
    command.env = plain_environment();
    command.env.insert(command.env.end(), environment.begin(), environment.end());
    command.clean_environment = true;
    // The claim outlives this process with the program, which may go on if this process is killed.
    command.kept = claim_.get();
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
  Descriptor claim_;  // the locked file
};

}  // namespace

std::optional<std::string> deleted_by_clean_up(const std::vector<std::string>& paths, const std::string& root) {
  namespace fs = std::filesystem;
  const auto is_beneath = [](const fs::path& path, const fs::path& directory) {
    return std::mismatch(directory.begin(), directory.end(), path.begin(), path.end()).first == directory.end();
  };
  std::error_code failure;
  for (const std::string& path : paths) {
    const fs::path plain = fs::absolute(path, failure).lexically_normal();
    const fs::path real = fs::weakly_canonical(plain, failure);
    for (const char* name : {"etc/kubernetes", "var/lib/kubelet"}) {
      const fs::path directory = fs::path(root) / name;
      if (is_beneath(plain, directory) || is_beneath(real, directory) ||
          is_beneath(real, fs::weakly_canonical(directory, failure)))
        return path;
    }
  }
  return std::nullopt;
}

std::unique_ptr<LocalMachine> this_machine(Clock& clock, std::string root) {
  return std::make_unique<ThisMachine>(clock, std::move(root));
}

}  // namespace haulout::cli
