// Interprets the deployments of an ostree system (Fedora CoreOS, RHCOS, Silverblue). Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/ports/backend.hpp"

namespace haulout::agent {

// Deployments are in rpm-ostree's order: the boot loader boots the first one next.
struct Deployment {
  std::string version;   // may be empty
  std::string checksum;  // checksum of the deployment's commit
  bool booted = false;
  bool staged = false;  // finalized only while the machine shuts down
  bool locked = false;  // finalization-locked: staged, and discarded by a plain reboot
};

// Returns the version, or the commit's checksum if the version is empty.
std::string version_of(const Deployment& deployment);

// Returns yes if a deployment is staged or if the first one is not the booted one. Returns unknown if the staged
// deployment is locked. A plain reboot would then boot the current version again and again. The program that locked the
// deployment has to finalize it.
Pending judge_deployments(const std::vector<Deployment>& deployments);

}  // namespace haulout::agent
