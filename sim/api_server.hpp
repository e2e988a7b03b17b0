// The simulated API server: a Transport (client side of HTTP) that responds from the store as kube-apiserver 1.36 does.
//
// A request takes half of its latency to arrive, and its response takes the other half to return. The server carries
// out each request that has arrived, even if the caller has stopped waiting, as in a real network. It responds only
// while the world's agenda runs. Calls fail with Errc::timeout, Errc::unreachable or Errc::reset. Cancellable, as if
// the caller had stopped waiting. Borrows the world.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "http/transport.hpp"
#include "sim/eviction.hpp"
#include "sim/lists.hpp"
#include "sim/single_objects.hpp"
#include "sim/watch_hub.hpp"

namespace haulout::sim {

// A complete response in the form of a stream. Used for watch requests that the server refuses, or to which a proxy
// responds with a page of its own.
class WholeBody final : public http::BodyStream {
 public:
  explicit WholeBody(http::Response response)
      : head_{response.status, std::move(response.headers)}, body_(std::move(response.body)) {}
  const http::ResponseHead& head() const override { return head_; }
  Task<std::string> read_some(TimePoint) override { co_return std::exchange(body_, {}); }

 private:
  http::ResponseHead head_;
  std::string body_;
};

class ApiServer final : public http::Transport {
 public:
  ApiServer(World& world, boost::asio::any_io_executor executor);

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

  // A function that is called with each request that has passed authorization. If it returns a response, that response
  // is sent instead of the server's own. Simulates webhooks and policies.
  using Intercept = std::function<std::optional<http::Response>(const Call&, const AuditEntry&)>;
  void intercept(Intercept intercept) { intercepts_.push_back(std::move(intercept)); }
  // An admission webhook: a function that is called with each eviction that is not a dry run, before the server checks
  // budgets.
  using Webhook = std::function<Admission(const AuditEntry&)>;
  void admit_evictions(Webhook webhook) { webhooks_.push_back(std::move(webhook)); }
  // Adds a listener, which is called with the audit entry of each request when the server responds to it.
  void on_answer(std::function<void(const AuditEntry&)> listener) { answer_listeners_.push_back(std::move(listener)); }

  const std::deque<AuditEntry>& audit() const { return audit_; }
  // Keeps only this many of the newest entries, for a long simulation whose audit log nobody reads. All by default.
  void limit_audit(std::size_t entries) { most_audit_ = entries; }
  WatchHub& watches() { return watches_; }
  Lists& lists() { return lists_; }
  // Resets every open connection: watches end with Errc::reset. The server still carries out the requests to which it
  // has not responded yet, but their responses are lost.
  void drop_connections();

 private:
  struct Answer {
    http::Response response;
    std::shared_ptr<WatchChannel> channel;  // the watch; set only if the server accepted one
  };
  struct Exchange;

  Task<Answer> exchange(http::Request request, TimePoint deadline, bool stream);
  void arrive(const std::shared_ptr<Exchange>& exchange);
  void dispatch(const std::shared_ptr<Exchange>& exchange, const Call& call, const Reply& reply);
  void dispatch_object(const Call& call, const Reply& reply);
  void evict(const Call& call, const Reply& reply);
  std::optional<http::Response> refused(const Call& call);

  World& world_;
  boost::asio::any_io_executor executor_;
  Texts texts_{Texts::Form::whole, 100};
  WatchHub watches_;
  Lists lists_;
  SingleObjects objects_;
  Evictions evictions_;
  std::deque<AuditEntry> audit_;
  std::size_t audit_start_ = 0;  // how many older entries were dropped
  std::size_t most_audit_ = std::numeric_limits<std::size_t>::max();
  std::uint64_t epoch_ = 0;  // number of calls of drop_connections() so far
  std::vector<Intercept> intercepts_;
  std::vector<Webhook> webhooks_;
  std::vector<std::function<void(const AuditEntry&)>> answer_listeners_;
};

}  // namespace haulout::sim
