// Faults between a client and its server: a decorator of Transport that follows a plan. Its behaviour depends only on
// the plan, the requests and the Rng. It borrows the inner transport, the clock and the Rng.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "http/transport.hpp"
#include "retry/rng.hpp"

namespace haulout::sim {

enum class FaultKind {
  refuse,        // connection refused
  dns,           // the server's name has no address
  tls,           // a certificate is not trusted
  protocol,      // the peer does not speak HTTP
  credentials,   // a local file is missing or incomplete
  crowded,       // connection fails while `most_streams` streams are open
  reset_before,  // the connection breaks before the server sees the request
  reset_after,   // the server carries out the request, but its answer is lost
  stall,         // no answer before the deadline; the server has carried out the request; streams: no further piece
  slow,          // the answer, or each piece of a stream, is late by `delay`
  truncate,      // the answer looks complete, but its body ends in the middle; streams: as half_line
  html,          // 200 with an HTML page of a proxy
  garbage,       // 200 without JSON; streams: one piece that is not JSON, before the remaining pieces
  hidden_error,  // 200 with a Status that says Failure with `code`
  no_kind,       // the server's answer, or the next event of its stream, has no `kind`
  no_uid,        // likewise, but no object in it has a UID
  unselected,    // the server ignores the field selector: it returns objects of all nodes, with all names
  unlabelled,    // the server ignores the label selector
  redirect,      // 302 to another address
  throttle,      // 429 text/plain with Retry-After
  server_error,  // error status `code`: as a Status, HTML from a proxy, or plain text
  future,        // 504: the server has not reached the resourceVersion yet
  cut,           // streams: the connection breaks
  end,           // streams: a proper end, but too early
  error_event,   // streams: an ERROR event with `code`, then the end
  half_line,     // streams: half of the next piece, then the end
  split,         // streams: pieces arrive in small parts; nothing is lost
};
std::string_view to_string(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::reset_before;
  Duration delay{};                     // slow: the delay
  int code = 503;                       // server_error, hidden_error, error_event: the status code
  bool proxy = false;                   // server_error: HTML instead of a Status
  bool plain = false;                   // server_error: plain text instead of a Status
  std::string words{};                  // dns, tls, protocol, credentials: the message; empty: a default
  std::size_t most_streams = 0;         // crowded: number of open streams from which on connections fail
  std::string retry_after = "1";        // throttle: Retry-After in seconds or as an HTTP date
  std::size_t after_pieces = SIZE_MAX;  // streams: the fault strikes after so many pieces …
  Duration after{};                     // … or so long after the stream was opened, whichever is first
};

// Says when a fault strikes. The first rule that applies to a request decides.
struct FaultRule {
  std::string verb;      // "get", "list", "watch", "create", …; empty: any
  std::string resource;  // "pods", "pods/eviction"; empty: any
  std::size_t skip = 0;  // number of matching requests that pass before the fault strikes
  std::size_t count = SIZE_MAX;
  TimePoint from = TimePoint::min();
  TimePoint until = TimePoint::max();
  unsigned percent = 100;
  Fault fault;
};

class FaultTransport final : public http::Transport {
 public:
  FaultTransport(http::Transport& inner, Clock& clock, Rng& rng, std::vector<FaultRule> plan = {});

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

  void add(FaultRule rule) { plan_.push_back({std::move(rule)}); }
  // Faults that have struck so far: "cut watch pods", …
  const std::vector<std::string>& struck() const { return struck_; }

 private:
  struct Entry {
    FaultRule rule;
    std::size_t seen = 0;
    std::size_t struck = 0;
  };
  std::optional<Fault> choose(const http::Request& request);
  Task<std::unique_ptr<http::BodyStream>> open_with_faults(http::Request request, TimePoint deadline);

  http::Transport& inner_;
  Clock& clock_;
  Rng& rng_;
  std::vector<Entry> plan_;
  // Shared with the streams, since a stream may outlive the transport.
  std::shared_ptr<std::size_t> open_streams_ = std::make_shared<std::size_t>(0);
  std::vector<std::string> struck_;
};

}  // namespace haulout::sim
