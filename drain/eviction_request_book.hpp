// Keeps which EvictionRequests the drain has for the pods that have responders (`--eviction-requests`), and holds these
// pods until judge_request() lets them be evicted. EvictionRequestFeed carries the steps out. Pure.
//
// A pod is held when its turn has come and nothing before this guard holds it. Then its request is created, or the one
// of an earlier drain is taken over. It holds no place meanwhile (P9). When no responder answers, or all have failed,
// the pod is evicted as without a request. The request of a pod that need not leave any more is withdrawn. While the
// machine goes down (Policy::waits_for_work is false), the book holds no pod and returns no step.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drain/diagnoses.hpp"
#include "drain/eviction_request_judge.hpp"
#include "drain/guards.hpp"
#include "drain/options.hpp"
#include "drain/pipeline.hpp"
#include "retry/backoff.hpp"
#include "retry/rng.hpp"

namespace haulout::drain {

class EvictionRequestBook final : public EvictionGuard {
 public:
  // Borrows options and rng. `server_now` returns the time by the server's clock.
  EvictionRequestBook(const Options& options, Rng& rng, std::function<WallTime()> server_now)
      : options_(options), rng_(rng), server_now_(std::move(server_now)) {}

  bool is_on() const;
  // Returns true if the pod may have an EvictionRequest. The API excludes members of PodGroups.
  static bool has_responders(const k8s::Pod& pod) { return !pod.eviction_responders.empty() && pod.pod_group.empty(); }

  std::optional<Hold> held(const k8s::Pod& pod, TimePoint now) override;
  void leaving(const k8s::Pod&, Leaves) override {}

  // The requests that exist were listed; request_changed() was called for each.
  void requests_known() { known_ = true; }
  // The requests cannot be used: the server does not serve them (`right_missing` is false), or may not be asked. From
  // now on no pod is held.
  void not_usable(std::string why, bool right_missing);
  // The Evictions, in which responders report, cannot be read. So no responder is known to answer.
  void processes_unreadable(std::string why) { unreadable_ = std::move(why); }
  // Report the objects of the watches; nullptr for a deletion.
  void request_changed(const std::string& uid, const k8s::EvictionRequest* request);
  void process_changed(const std::string& uid, const k8s::EvictionProcess* process);

  struct Step {
    enum class Kind { create, renew, withdraw } kind = Kind::create;
    std::string pod_uid;
    k8s::EvictionRequest request;  // to be created, or to be patched
  };
  // Returns at most `most` steps that are due, withdrawals first. Each stays in flight until answered() is called.
  // `pods` is Pipeline::pods(); `node_uid` becomes the label of new requests.
  std::vector<Step> take_steps(const std::map<std::string, TrackedPod>& pods, const std::string& node_uid,
                               std::size_t most, TimePoint now);
  // Records the answer, which has the request as the server stored it.
  void answered(const Step& step, const Result<k8s::EvictionRequest>& answer, TimePoint now);
  std::size_t requests_out() const;

  // Returns true if a request of this drain may ask for the eviction of a pod that exists.
  bool may_have_requested(const std::map<std::string, TrackedPod>& pods) const;
  // Returns the next time after `now` at which take_steps() can have more; max() if there is none.
  TimePoint next_due(TimePoint now) const;

  // Appends the diagnoses:
  //   EvictionRequestsUnserved  The API server does not serve EvictionRequests.
  //   RightMissing              The drain may not create them, or may not read what responders report.
  //   EvictionRequestFailed     A pod is evicted as without a request, although responders were to take part.
  void diagnose(const std::vector<TrackedPod*>& leaving, std::vector<DiagnosisFact>& facts) const;

 private:
  struct State {
    bool wanted = false;  // the pod's turn has come
    bool created = false;
    bool request_out = false;
    bool sent = false;  // a request was sent that asks for the eviction
    unsigned refusals = 0;
    TimePoint retry_at{};
    Backoff retry{BackoffOptions{}};
    std::optional<RequestSign> sign{};
    std::optional<TimePoint> silent_since{};
    std::string refused{};  // why the server will not accept the request
    std::string why{};      // why the pod is evicted as without a request
  };

  State& state_of(const std::string& pod_uid);
  void listen(State& state, const RequestFacts& facts, TimePoint now);
  RequestFacts facts_of(const std::string& pod_uid, const State& state) const;
  const k8s::EvictionRequest* request_of(const std::string& pod_uid) const;
  const k8s::EvictionProcess* process_of(const std::string& pod_uid) const;

  const Options& options_;
  Rng& rng_;
  std::function<WallTime()> server_now_;
  bool known_ = false;
  std::string unusable_;  // why; empty: they can be used
  bool right_missing_ = false;
  std::string unreadable_;
  std::map<std::string, State> states_;                    // by UID of the pod
  std::map<std::string, k8s::EvictionRequest> requests_;   // by their UID
  std::map<std::string, k8s::EvictionProcess> processes_;  // by their UID
};

}  // namespace haulout::drain
