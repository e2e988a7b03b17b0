// The machine on which this program runs, for `haulout retire --local`: who it is, and the programs that clean it up.
// The functions are pure and say whether a Node is that machine's. LocalMachine is the interface to the machine, with a
// fake in the tests. Errors are those of agent/hosts/host_root.hpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/hooks/program_files.hpp"
#include "k8s/node_machine.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::cli {

// Directory of the programs that clean up the machine.
inline constexpr const char* clean_up_directory = "/etc/haulout/retire.d";

// How messages advise to run the programs without this command.
inline constexpr const char* by_hand =
    "run the programs in /etc/haulout/retire.d by hand, first with HAULOUT_DRY_RUN=1, which shows what each would "
    "remove";

struct MachineIdentity {
  bool root = false;  // this process may do everything on the machine
  // Why this process is not, or may not be, on the machine itself, but in a container of it: there, the ids may be the
  // machine's, but not the files and the services. Empty if it is on the machine.
  std::string elsewhere{};
  std::string host_name{};               // as the kernel reports it
  std::string machine_id{};              // /etc/machine-id; empty if there is none
  std::string boot_id{};                 // /proc/sys/kernel/random/boot_id
  std::vector<std::string> addresses{};  // of its interfaces, without the loopback addresses
};

// Returns the name under which a kubelet of this machine registers its node, unless it is given another one.
std::string node_name_of(const MachineIdentity& machine);

// Returns why the Node is not known to be that of this machine and of this boot, with both values and the way out.
// Returns an empty string if both ids are there and equal. A name alone is no evidence: a machine may have been
// replaced by another one with the same host name. Clones may share both ids, so a Node with another name than this
// machine must also show one of its addresses.
std::string another_machine(const k8s::NodeMachine& node, const MachineIdentity& machine);

// Returns the first of the paths that is in a directory which a clean-up deletes: /etc/kubernetes or /var/lib/kubelet
// of the system in `root`, also by way of links. Returns nothing if none is. Blocks while it reads links.
std::optional<std::string> deleted_by_clean_up(const std::vector<std::string>& paths, const std::string& root = "/");

using ProgramEnvironment = std::vector<std::pair<std::string, std::string>>;

class LocalMachine {
 public:
  virtual ~LocalMachine() = default;
  virtual Result<MachineIdentity> identity() = 0;
  // Claims the machine for one clean-up, until this object and every program that it has started have ended. Fails with
  // Errc::unavailable if another one has claimed it. Idempotent.
  virtual Result<> claim() = 0;
  // Lists the programs in `clean_up_directory`. Fails as agent::program_files().
  virtual Result<agent::ProgramFiles> programs() = 0;
  // Runs one program until it ends, and calls `said` with each line of the first MiB of its output. The program gets
  // `environment`, a PATH, HOME, LANG, TERM and the proxies of this process, and nothing else of its environment: what
  // a caller has set must not redirect a program that deletes. Fails with Errc::timeout if it still runs at the
  // deadline; it is then ended with its children. Fails with Errc::unavailable if it cannot be started or fails. The
  // message does not name the program. Cancellable: the program then gets SIGTERM, and SIGKILL if it still runs half a
  // second later. What it writes in between is not shown, and it blocks when the pipe is full.
  virtual Task<> run(std::string program, ProgramEnvironment environment, TimePoint deadline,
                     std::function<void(std::string_view)> said) = 0;
};

// Returns the machine itself, or the system in the directory `root`. Borrows the clock.
std::unique_ptr<LocalMachine> this_machine(Clock& clock, std::string root = "/");

}  // namespace haulout::cli
