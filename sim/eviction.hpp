// The subresource pods/eviction of the simulated API server: the algorithm of the real server, with the same order of
// checks, retries and responses. Borrows the world. No I/O; a refusal is a response.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "sim/call.hpp"
#include "sim/status_bodies.hpp"
#include "sim/world.hpp"

namespace haulout::sim {

struct EvictionRequest;

// The decision of an admission webhook about an eviction.
struct Admission {
  Duration takes{};  // time that the webhook takes before it decides
  std::optional<StatusBody> refusal{};
  bool as_dry_run = false;  // true makes the eviction a dry run: the request succeeds without effect
};

class Evictions {
 public:
  explicit Evictions(World& world) : world_(world) {}
  // Handles an eviction. Calls `reply` exactly once: immediately, or later if the real server would retry or write a
  // budget first.
  void handle(const Call& call, Reply reply, bool as_dry_run = false);

 private:
  using Shared = std::shared_ptr<EvictionRequest>;
  void without_budget(const Shared& request, int tries);
  void with_budget(const Shared& request);
  void decrement(const Shared& request, const Key& budget, int tries);
  void write_budget(const Shared& request, const Key& budget, std::uint64_t seen, int tries);
  void conflict(const Shared& request, const Key& budget, int tries);
  void finish(const Shared& request);
  std::optional<StatusBody> delete_with_condition(const Shared& request, const std::string& pinned_version);

  World& world_;
  // Number of writes of each budget by evictions. If it changes between an eviction's read and write, the write is a
  // conflict.
  std::unordered_map<Key, std::uint64_t, HashOfKey> budget_writes_;
};

}  // namespace haulout::sim
