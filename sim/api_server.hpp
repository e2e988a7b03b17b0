// The simulated API server: a Transport that answers from the store as kube-apiserver 1.36 does.
//
// A request takes half its latency to arrive and half to return; what has arrived is carried out even if the caller has
// given up meanwhile, as on a real wire. Nothing is answered unless the world's agenda runs.
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

  // Called with each request before it is looked at; an answer of its own replaces the server's (webhooks, policies).
  using Intercept = std::function<std::optional<http::Response>(const Call&, const AuditEntry&)>;
  void intercept(Intercept intercept) { intercepts_.push_back(std::move(intercept)); }
  // Called with each eviction that is no dry run, before the server looks at budgets: an admission webhook.
  using Webhook = std::function<Admission(const AuditEntry&)>;
  void admit_evictions(Webhook webhook) { webhooks_.push_back(std::move(webhook)); }
  // Called with each entry when it has been answered.
  void on_answer(std::function<void(const AuditEntry&)> listener) { answer_listeners_.push_back(std::move(listener)); }

  const std::deque<AuditEntry>& audit() const { return audit_; }
  WatchHub& watches() { return watches_; }
  // Every connection breaks: watches end with a reset, answers under way are lost, what was asked is still carried out.
  void drop_connections();
  // What is answered from the server's cache, lists with resourceVersion=0, is the state of now until then.
  void hold_cache_until(TimePoint when);
  // Pages after the first of every list begun so far are lost: 410.
  void expire_continue_tokens() { snapshots_.clear(); }

 private:
  struct Answer {
    http::Response response;
    std::shared_ptr<WatchChannel> channel;  // set for a watch that was accepted
  };
  struct Exchange;
  struct Snapshot {
    std::uint64_t revision;
    std::vector<Object> objects;
  };
  struct OldCache {
    TimePoint until{};
    std::uint64_t revision = 0;
    std::map<std::string, std::vector<Object>, std::less<>> objects;  // by resource
  };

  Task<Answer> exchange(http::Request request, TimePoint deadline, bool stream);
  void arrive(const std::shared_ptr<Exchange>& exchange);
  void dispatch(const std::shared_ptr<Exchange>& exchange, const Call& call, const Reply& reply);
  void dispatch_object(const Call& call, const Reply& reply);
  void evict(const Call& call, const Reply& reply);
  std::optional<http::Response> gatekeep(const Call& call);
  // Null: the user of the switches.
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
  std::size_t audit_begin_ = 0;  // number of the first entry kept
  std::uint64_t epoch_ = 0;      // of connections
  std::vector<Intercept> intercepts_;
  std::vector<Webhook> webhooks_;
  std::vector<std::function<void(const AuditEntry&)>> answer_listeners_;
  Texts items_{Texts::Form::item};
  std::map<std::string, Snapshot> snapshots_;  // by what was listed and its revision
  OldCache old_cache_;
};

}  // namespace haulout::sim
