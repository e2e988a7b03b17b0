// Which back end this host has: said by --backend, implied by --sentinel or --sentinel-command, or found from
// /etc/os-release and a few marks beneath the host's root. Blocks as files do.
#pragma once

#include <string>
#include <vector>

#include "agent/hosts/host_root.hpp"

namespace haulout::agent {

// As --backend spells them, sorted.
const std::vector<std::string>& backend_names();

struct BackendWish {
  std::string backend{};           // --backend; empty: find it
  std::string sentinel{};          // --sentinel
  std::string sentinel_command{};  // --sentinel-command
};

struct FoundBackend {
  std::string backend;
  std::string sentinel{};  // of "file": as wished, or where this system leaves it
  std::string why{};       // for people
  bool operator==(const FoundBackend&) const = default;
};

// Errc::invalid for a name that is none of backend_names() (it lists them) and for options that contradict each other;
// Errc::unavailable when nothing was found, saying what was seen and which options help, or when the host's files
// cannot be read.
Result<FoundBackend> choose_backend(const BackendWish& wish, const HostRoot& root);

}  // namespace haulout::agent
