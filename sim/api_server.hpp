// The simulated API server: a Transport (client side of HTTP) that answers from the store as kube-apiserver 1.36 does.
//
// A request takes half of its latency to arrive, and its answer takes the other half to return. The server carries out
// each request that has arrived, even if the caller has given up, as over a real network. It answers only while the
// world's agenda runs. Calls fail with Errc::timeout, Errc::unreachable or Errc::reset.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "http/transport.hpp"
#include "sim/audit.hpp"
#include "sim/eviction.hpp"
#include "sim/watch_hub.hpp"

namespace haulout::sim {

class ApiServer final : public http::Transport {
 public:
  ApiServer(World& world, boost::asio::any_io_executor executor);

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

  // A function that is called with each request that has passed authorization. If it returns a response, that replaces
  // the server's own, as webhooks and policies can do.
  using Intercept = std::function<std::optional<http::Response>(const Call&, const AuditEntry&)>;
  void intercept(Intercept intercept) { intercepts_.push_back(std::move(intercept)); }
  // An admission webhook: a function that is called with each eviction that is not a dry run, before the server checks
  // budgets.
  using Webhook = std::function<Admission(const AuditEntry&)>;
  void admit_evictions(Webhook webhook) { webhooks_.push_back(std::move(webhook)); }
  // Adds a listener. The server calls it with the audit entry of each request when it answers the request.
  void on_answer(std::function<void(const AuditEntry&)> listener) { answer_listeners_.push_back(std::move(listener)); }

  const std::deque<AuditEntry>& audit() const { return audit_; }
  WatchHub& watches() { return watches_; }
  // Breaks every open connection: watches end with a reset. The server still carries out the requests that it has not
  // answered yet, but their answers are lost.
  void drop_connections();
  // Until `when`, lists with resourceVersion=0 return the state at the moment of this call, as from a stale cache.
  void hold_cache_until(TimePoint when);
  // Expires the continue tokens of all lists begun so far: the server answers requests for later pages with 410.
  void expire_continue_tokens() { snapshots_.clear(); }

 private:
  struct Answer {
    http::Response response;
    std::shared_ptr<WatchChannel> channel;  // the watch; set only if the server accepted one
  };
  struct Exchange;
  struct Snapshot {
    std::uint64_t revision;
    std::vector<Object> objects;
  };
  struct OldCache {
    TimePoint until{};
    std::uint64_t revision = 0;
    // All objects at that revision. Key: plural of the resource.
    std::map<std::string, std::vector<Object>, std::less<>> objects;
  };

  Task<Answer> exchange(http::Request request, TimePoint deadline, bool stream);
  void arrive(const std::shared_ptr<Exchange>& exchange);
  void dispatch(const std::shared_ptr<Exchange>& exchange, const Call& call, const Reply& reply);
  void dispatch_object(const Call& call, const Reply& reply);
  void evict(const Call& call, const Reply& reply);
  std::optional<http::Response> gatekeep(const Call& call);
  // caller() returns the identity that belongs to the token of the call, or null if there is none. user() returns its
  // name, or else the user of the switches.
  const Identity* caller(const Call& call) const;
  std::string user(const Call& call) const;

  // api_list.cpp
  void list(const Call& call, const Reply& reply);
  http::Response page(const Call& call, const Selection& selection);
  http::Response from_old_cache(const Call& call, const Selection& selection);
  std::optional<Selection> selection_of(const Call& call, http::Response* refusal);
  std::shared_ptr<WatchChannel> watch(const Call& call, http::Response* answer);
  // api_write.cpp
  http::Response get(const Call& call);
  http::Response get_scale(const Call& call);
  http::Response create(const Call& call);
  http::Response update(const Call& call);
  http::Response remove(const Call& call);
  std::optional<StatusBody> namespace_problem(const Call& call);
  // api_reviews.cpp
  http::Response access_review(const Call& call);
  http::Response self_review(const Call& call);
  // api_patch.cpp
  http::Response patch(const Call& call);
  // api_discovery.cpp
  http::Response discover(const Call& call);

  static constexpr std::size_t most_snapshots = 64;
  World& world_;
  boost::asio::any_io_executor executor_;
  WatchHub watches_;
  Evictions evictions_;
  std::deque<AuditEntry> audit_;
  std::size_t audit_begin_ = 0;  // sequence number of the first entry in `audit_`; older entries were dropped
  std::uint64_t epoch_ = 0;      // number of drop_connections() calls so far
  std::vector<Intercept> intercepts_;
  std::vector<Webhook> webhooks_;
  std::vector<std::function<void(const AuditEntry&)>> answer_listeners_;
  Texts items_{Texts::Form::item};
  // States from which later pages of lists are answered. Key: resource, namespace and revision of the list.
  std::map<std::string, Snapshot> snapshots_;
  OldCache old_cache_;
};

}  // namespace haulout::sim
