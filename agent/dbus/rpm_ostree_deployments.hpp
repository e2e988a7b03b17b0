// The deployments of an ostree system (Fedora CoreOS, RHCOS, Silverblue), judged. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/ports/backend.hpp"

namespace haulout::agent {

// As rpm-ostree lists them: the first is the one that the boot loader takes next.
struct Deployment {
  std::string version;   // may be empty
  std::string checksum;  // of its commit
  bool booted = false;
  bool staged = false;  // is written for good only while the machine shuts down
  bool locked = false;  // finalization-locked: staged, and a plain reboot throws it away
};

// The version, or the checksum of a commit without one.
std::string version_of(const Deployment& deployment);

// yes: a staged deployment, or the first one is not the booted one. A locked one is `unknown`: something is to be done,
// but a plain reboot would come back to what runs now, again and again; whoever locked it has to finalize it.
Pending judge_deployments(const std::vector<Deployment>& deployments);

}  // namespace haulout::agent
