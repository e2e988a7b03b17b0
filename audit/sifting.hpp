// Sifts manifests before their controllers get pods: patches of a kustomization, and objects that several files have,
// must not take the place of whole objects unsaid. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rehearse/stage.hpp"

namespace haulout::audit {

struct Sifted {
  std::vector<sim::Json> objects;            // in their order
  std::map<std::string, std::string> files;  // the file of each object, by "namespace/kind/name" as in Finding::object
  std::size_t patches = 0;                   // objects that were left out because they only patch others
  std::vector<std::string> assumed;          // a phrase for each object that was left out, and the number of the others
};

// Leaves out patches, which lack what the API server demands of an object. Of several objects with the same kind,
// namespace and name, keeps the first. Sifted::assumed names those of which the others differ.
Sifted sifted(rehearse::SnapshotObjects read);

// Returns a phrase for each reason for which files were skipped, with the number of the files and the first of them.
std::vector<std::string> assumed_of(const std::vector<rehearse::Skipped>& skipped);

// Fails with Errc::decode, with what to do instead, if the manifests have neither a workload nor a budget. `others` are
// the kinds that were left out, and `kustomizes` is true if a text names the API group of kustomize.
Result<> check_manifests(const Sifted& manifests, const std::set<std::string>& others,
                         const std::vector<rehearse::Skipped>& skipped, bool kustomizes);

// Returns true if the kinds that were left out contain CronJobs.
bool have_cron_jobs(const std::set<std::string>& others);

}  // namespace haulout::audit
