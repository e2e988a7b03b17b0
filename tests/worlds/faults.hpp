// Faults between a client and its server: a decorator of Transport that follows a plan. What happens depends only on
// the plan, the requests and the Rng.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "http/transport.hpp"
#include "retry/rng.hpp"

namespace haulout::sim {

enum class FaultKind {
  refuse,        // no connection
  dns,           // the server's name has no address
  tls,           // a certificate is not believed
  protocol,      // what answers does not speak HTTP
  credentials,   // a file of this machine is missing, or half written
  crowded,       // no connection while `most_streams` streams are open
  reset_before,  // the connection breaks and the server never sees the request
  reset_after,   // the server has carried the request out, its answer is lost
  stall,         // no answer until the caller gives up; the server has seen the request
  slow,          // the answer, or each piece of a stream, comes `delay` later
  truncate,      // a whole-looking answer whose body ends in the middle
  html,          // 200 with a page of some proxy
  garbage,       // 200, and no JSON; streams: a piece that is none, in front of the others
  hidden_error,  // 200, and a Status that says Failure with `code`
  no_kind,       // the server's answer, or the next event of its stream, does not say what it is
  no_uid,        // likewise, and no object in it has a UID
  unselected,    // the server does what it is asked for, but for the field selector: of all nodes, under all names
  redirect,      // 302 to somewhere else
  throttle,      // 429 text/plain with Retry-After
  server_error,  // 5xx, or what `code` says: JSON, HTML from a proxy, or plain text
  future,        // 504: a resourceVersion that the server has not reached
  cut,           // streams: the connection breaks
  end,           // streams: a proper end, before its time
  error_event,   // streams: an ERROR event with `code`, then the end
  half_line,     // streams: half of the next piece, then the end
  split,         // streams: pieces arrive in small parts; nothing is lost
};
std::string_view to_string(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::reset_before;
  Duration delay{};                     // slow: how much later
  int code = 503;                       // server_error, hidden_error, error_event
  bool proxy = false;                   // server_error: HTML instead of a Status
  bool plain = false;                   // server_error: text instead of a Status
  std::string words{};                  // dns, tls, protocol, credentials: what is wrong; empty: one of many things
  std::size_t most_streams = 0;         // crowded
  std::string retry_after = "1";        // throttle: seconds or an HTTP date
  std::size_t after_pieces = SIZE_MAX;  // what befalls a stream: so many pieces come first …
  Duration after{};                     // … or until so long after it was opened, whichever is first
};

// When a fault strikes: the first rule that applies to a request decides.
struct FaultRule {
  std::string verb;      // "get", "list", "watch", "create", …; empty: any
  std::string resource;  // "pods", "pods/eviction"; empty: any
  std::size_t skip = 0;  // of the requests it applies to, leave so many alone
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
  // What has been done so far: "cut watch pods", …
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
  std::shared_ptr<std::size_t> open_streams_ = std::make_shared<std::size_t>(0);  // a stream may outlive this
  std::vector<std::string> struck_;
};

}  // namespace haulout::sim
