// A transport that counts what agents request of the API server and what the server sends them. Borrows the inner
// transport, and must outlive its streams. Errors and cancellation are those of the inner transport.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "http/transport.hpp"
#include "retry/clock.hpp"

namespace haulout::fleet {

class Meter final : public http::Transport {
 public:
  Meter(http::Transport& inner, Clock& clock) : inner_(inner), clock_(clock) {}

  // What was counted since the last reset().
  struct Counts {
    std::size_t requests = 0;                    // watches count, too
    std::size_t bytes = 0;                       // of bodies that the server has sent, watch events included
    std::map<std::string, std::size_t> kinds{};  // number of requests of each kind: "list nodes"
    std::map<std::chrono::seconds, std::size_t> by_second{};  // number of requests in each second
    std::size_t most_in_a_second() const;
  };
  const Counts& counts() const { return counts_; }
  void reset() { counts_ = {}; }
  std::size_t open_watches() const { return open_watches_; }

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

 private:
  class Watch;
  void count(const http::Request& request);

  http::Transport& inner_;
  Clock& clock_;
  Counts counts_;
  std::size_t open_watches_ = 0;
};

}  // namespace haulout::fleet
