// The part of `haulout retire --local` that happens on the machine: it checks that the Node is this machine's, runs the
// programs that clean up the machine, first without a change (HAULOUT_DRY_RUN=1), and keeps what became of each. The
// drain and the deletion of the Node are those of every retirement (jobs.hpp, drain/retirement.hpp).
//
// Its coroutines are cancellable. programs() then shows how far they came. Borrows what Tools refers to; owns the
// machine.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/drain/local_machine.hpp"
#include "cli/options/settings.hpp"
#include "cli/program/program.hpp"
#include "drain/clean_up.hpp"
#include "drain/report.hpp"

namespace haulout::cli {

// Returns one line for people that says what became of each program: "10-a is done, 50-b failed, 60-c did not run".
// Pure.
std::string clean_up_line(const std::vector<drain::CleanUpProgram>& programs);

class LocalRetirement {
 public:
  LocalRetirement(Tools tools, const Settings& settings, std::unique_ptr<LocalMachine> machine);

  // Returns the name of this machine's node: the given one or, if none is given, the host name in lower case. Fails,
  // without a request, if this process is not root or not on the machine itself, if another clean-up runs, if the
  // machine cannot be read, if there is no program to run, or if the clean-up would delete what the connection needs.
  Result<std::string> node_name();
  // Checks that the Node is this machine's, and runs every program with HAULOUT_DRY_RUN=1. Returns why the node must
  // not be retired, or an empty string. Fails as the client does.
  Task<std::string> prepare(k8s::Node node);
  // Runs the programs, in order, up to the first that fails. Hours may have passed since prepare(). So it checks again,
  // before the first and after the last program, that the Node is this machine's, and before each that the programs are
  // those that were rehearsed. Returns what is wrong, as what keeps the Node `uid`.
  boost::asio::awaitable<std::optional<drain::Leftover>> clean_up(std::string uid);

  const std::vector<drain::CleanUpProgram>& programs() const { return programs_; }
  bool begun() const { return begun_; }  // true if clean_up() has started a program

 private:
  Result<> check_place() const;
  Result<> check_programs() const;
  Task<k8s::NodeMachine> look(Duration patience);
  std::string objection(const k8s::NodeMachine& node) const;
  boost::asio::awaitable<std::optional<drain::Leftover>> look_before();
  boost::asio::awaitable<std::optional<drain::Leftover>> look_after();
  Task<> run(drain::CleanUpProgram& program, bool dry_run);

  Tools tools_;
  RetireSettings settings_;
  std::vector<std::string> nodes_;
  std::unique_ptr<LocalMachine> machine_;
  MachineIdentity identity_;
  std::string node_;  // name of the Node
  std::string uid_;   // UID of the Node that prepare() has checked
  std::vector<drain::CleanUpProgram> programs_;
  bool begun_ = false;
};

}  // namespace haulout::cli
