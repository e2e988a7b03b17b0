// The machine on which this program runs, for `haulout retire --local`: who it is, and the programs that clean it up.
// The functions are pure and say whether a Node is that machine's. LocalMachine is the interface to the machine, with a
// fake in the tests. Errors are those of agent/hosts/host_root.hpp.
#pragma once

#include <functional>
#include <memory>
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

struct MachineIdentity {
  bool root = false;       // this process may do everything on the machine
  std::string host_name;   // as the kernel reports it
  std::string machine_id;  // /etc/machine-id; empty if there is none
  std::string boot_id;     // /proc/sys/kernel/random/boot_id
};

// Returns the name under which a kubelet of this machine registers its node, unless it is given another one.
std::string node_name_of(const MachineIdentity& machine);

// Returns why the Node is not known to be that of this machine and of this boot, with both values and the way out.
// Returns an empty string if both ids are there and equal. A name alone is no evidence: a machine may have been
// replaced by another one with the same host name.
std::string another_machine(const k8s::NodeMachine& node, const MachineIdentity& machine);

using ProgramEnvironment = std::vector<std::pair<std::string, std::string>>;

class LocalMachine {
 public:
  virtual ~LocalMachine() = default;
  virtual Result<MachineIdentity> identity() = 0;
  // Lists the programs in `clean_up_directory`. Fails as agent::program_files().
  virtual Result<agent::ProgramFiles> programs() = 0;
  // Runs one program until it ends, and calls `said` with each line of its output. Fails with Errc::timeout if it still
  // runs at the deadline; it is then ended. Fails with Errc::unavailable if it cannot be started or fails. The message
  // does not name the program. Cancellable: the program then gets SIGTERM, and SIGKILL if it still runs half a second
  // later.
  virtual Task<> run(std::string program, ProgramEnvironment environment, TimePoint deadline,
                     std::function<void(std::string_view)> said) = 0;
};

// Returns the machine itself, or the system in the directory `root`. Borrows the clock.
std::unique_ptr<LocalMachine> this_machine(Clock& clock, std::string root = "/");

}  // namespace haulout::cli
