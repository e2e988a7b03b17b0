// Reads what `apt-get --simulate` prints (apt-get(8)): the packages that it would install. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "agent/ports/updater.hpp"

namespace haulout::agent {

// One package that would be installed in a newer version.
struct AptUpdate {
  std::string package{};  // with ":ARCH" if apt prints it so
  std::string from{};     // the installed version; empty if the package is not installed yet
  std::string to{};
  bool security = false;  // the version comes from a security archive: "stable-security", "jammy-security"
  bool operator==(const AptUpdate&) const = default;
};

// What apt-get would do.
struct AptPlan {
  std::vector<AptUpdate> updates{};       // in apt's order
  std::vector<std::string> unfinished{};  // packages that are unpacked and not configured, so dpkg was interrupted
  std::vector<std::string> removed{};     // packages that would be removed
  bool operator==(const AptPlan&) const = default;
};

// Reads the lines that begin with Inst, Conf and Remv; ignores all others. Fails with Errc::decode if such a line does
// not have the documented form, for example if a name or a version has a character that Debian does not allow. Names
// and versions of the result are safe as arguments of apt-get.
Result<AptPlan> parse_simulation(std::string_view output);

// Returns only the security updates of installed packages. Packages on which they depend are not among them; apt-get
// adds those when it installs.
AptPlan only_security(AptPlan plan);

// Returns which packages of the plan are in this output of `apt-mark showauto`: they were installed automatically.
std::vector<std::string> automatic(const AptPlan& plan, std::string_view output);

// Returns the plan as the agent shows it.
Updates updates_of(const AptPlan& plan);

// Compares the plan from before an installation with the plan `after` it. Returns a clause that names the updates of
// `plan` that `after` still has in the same version, and the packages that `after` has as not configured; empty if
// there are none. A newer version that has become available meanwhile is another update.
std::string still_waiting(const AptPlan& plan, const AptPlan& after);

}  // namespace haulout::agent
