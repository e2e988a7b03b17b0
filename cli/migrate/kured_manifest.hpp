// Reads how kured is called from text: a DaemonSet as YAML or JSON, alone, among other objects or in a List; or the
// values of kured's Helm chart, with which its DaemonSet would call kured, as a document or in a HelmRelease of Flux or
// an Application of Argo CD. The chart is version 6.1.0. Pure.
#pragma once

#include <string>
#include <string_view>

#include "cli/migrate/kured_call.hpp"
#include "retry/task.hpp"

namespace haulout::cli {

// Fails with Errc::decode if the text is neither YAML nor JSON, or if it has no DaemonSet of kured and no values of its
// chart. A DaemonSet counts before a release, and a release before values as a document. Of several DaemonSets or
// releases, reads the one with this name. Other objects are ignored.
Result<KuredCall> read_kured_manifest(std::string_view manifest, std::string_view name);

// Reads a DaemonSet of the API server. Fails with Errc::decode.
Result<KuredCall> read_kured_daemon_set(std::string_view json);

}  // namespace haulout::cli
