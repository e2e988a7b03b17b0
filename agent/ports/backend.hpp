// Port: what the operating system says about its updates. One implementation per update tool; fakes live with the tests
// and the demo. An answer that cannot be had is `unknown`, never `no` and never `yes`: unknown never reboots a node.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

enum class Need { unknown, no, yes };

struct Pending {
  Need need = Need::unknown;
  std::vector<std::string> reasons{};  // for people: packages, a kernel, a version
  std::string target{};                // the version that the reboot leads to; empty where the tool has no versions
  std::string problem{};               // why it is unknown: thing, cause, way out
  bool operator==(const Pending&) const = default;
};

class Backend {
 public:
  virtual ~Backend() = default;
  // As --backend spells it.
  virtual std::string name() const = 0;
  // Asks the operating system. Never fails: what went wrong is the problem of `unknown`. Cancellable.
  virtual boost::asio::awaitable<Pending> pending(TimePoint deadline) = 0;
  // The version that runs; empty where the tool has no versions. Cancellable.
  virtual Task<std::string> booted(TimePoint deadline) = 0;
  // Puts `target` in place so that the next boot takes it; done at once where the system has done so by itself.
  // Idempotent. Cancellable, and then asked again by the next agent.
  virtual Task<> apply(std::string target, TimePoint deadline) = 0;
  // Returns when asking again may give another answer; may return without cause. Cancellable.
  virtual boost::asio::awaitable<void> changed() = 0;
};

}  // namespace haulout::agent
