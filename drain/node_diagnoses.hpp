// Diagnoses about the node, its kubelet, the pod that Haulout runs in, and the clock of Haulout's machine. Pure.
#pragma once

#include <vector>

#include "drain/diagnoses.hpp"

namespace haulout::drain {

// A clock that differs from the server's by more than this is reported as ClockSkew.
inline constexpr Duration clock_skew_limit = std::chrono::seconds(30);

// KubeletNotReady, for a node that still has pods that must leave.
DiagnosisFact diagnose_not_ready(const std::string& node);

// Appends the diagnoses that hold now to `facts`.
void diagnose_node(const Pipeline& pipeline, const NodeFacts& node, std::vector<DiagnosisFact>& facts);

}  // namespace haulout::drain
