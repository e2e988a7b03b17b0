// The diagnoses that are about the node, its agent and its clock. Pure.
#pragma once

#include <vector>

#include "drain/diagnoses.hpp"

namespace haulout::drain {

// Beyond this, what a clock says is of no use beside the server's.
inline constexpr Duration clock_skew_limit = std::chrono::seconds(30);

// Of a node with pods that must leave.
DiagnosisFact diagnose_not_ready(const std::string& node);

void diagnose_node(const Pipeline& pipeline, const NodeFacts& node, std::vector<DiagnosisFact>& facts);

}  // namespace haulout::drain
