// Keeps which EvictionRequests the drain has for the pods that have responders (`--eviction-requests`), and holds these
// pods until judge_request() lets them be evicted. EvictionRequestFeed carries the steps out. Pure.
//
// A pod is held when its turn has come and nothing before this guard holds it. Then its request is created, or the one
// of an earlier drain is taken over. It holds no place meanwhile (P9). When no responder answers, or all have failed,
// the pod is evicted as without a request. The request of a pod that need not leave any more is withdrawn, and so are
// all while the node is schedulable: a pod that left could come back. They are renewed after the next cordon. While the
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

// What is known of the requests that are to be withdrawn.
struct Asked {
  // The server has had some. So if it does not serve EvictionRequests now, it may serve them again.
  bool seen = false;
  // The answer to one may be lost, so it may still take effect: nothing is withdrawn for good before some seconds have
  // passed.
  bool unanswered = false;
};

// Returns true for a request of Haulout that still asks for the eviction of its pod.
bool is_open(const k8s::EvictionRequest& request);

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

  // The requests that exist, or the Evictions in which responders report, were listed; request_changed(), or
  // process_changed(), was called for each. Before both are known, no silence is judged.
  void requests_known() { known_ = true; }
  void processes_known() { processes_known_ = true; }
  bool are_requests_known() const { return known_; }
  // The requests cannot be used: the server does not serve them, or refuses to list or to create any. From now on no
  // pod is held.
  void not_usable(const Error& error) { unusable_ = Obstacle::of(error); }
  // The Evictions cannot be read. So no responder is known to answer.
  void processes_unreadable(const Error& error);
  // Report the objects of the watches; nullptr for a deletion.
  void request_changed(const std::string& uid, const k8s::EvictionRequest* request);
  void process_changed(const std::string& uid, const k8s::EvictionProcess* process);

  struct Step {
    enum class Kind { create, renew, withdraw } kind = Kind::create;
    std::string pod_uid;
    k8s::EvictionRequest request;  // to be created, or to be patched
  };
  // What the drain sees of its cordon. `in_doubt`: the Node is being read again, so no request is created or renewed.
  enum class Node { cordoned, in_doubt, schedulable };
  // Returns at most `most` steps that are due, withdrawals first. Each stays in flight until answered() is called.
  // `pods` is Pipeline::pods(); `node_uid` becomes the label of new requests.
  std::vector<Step> take_steps(const std::map<std::string, TrackedPod>& pods, const std::string& node_uid, Node node,
                               std::size_t most, TimePoint now);
  // Records the answer, which has the request as the server stored it.
  void answered(const Step& step, const Result<k8s::EvictionRequest>& answer, TimePoint now);
  std::size_t requests_out() const;

  // Returns true if a request of this drain may ask for the eviction of a pod that exists.
  bool may_have_requested(const std::map<std::string, TrackedPod>& pods) const;
  Asked asked(const std::map<std::string, TrackedPod>& pods) const;
  // Returns the next time after `now` at which take_steps() can have more; max() if there is none.
  TimePoint next_due(TimePoint now) const;

  // Appends the diagnoses:
  //   EvictionRequestsUnserved  The API server does not serve EvictionRequests, or what responders report.
  //   RightMissing              The drain may not create them, or may not read what responders report.
  //   EvictionRequestFailed     A pod is evicted as without a request, although responders were to take part; or all
  //                             are, because the server answers with another error.
  void diagnose(const std::vector<TrackedPod*>& leaving, std::vector<DiagnosisFact>& facts) const;

 private:
  // Why requests or Evictions cannot be used.
  struct Obstacle {
    enum class Kind { unserved, right_missing, other } kind = Kind::other;
    std::string why{};
    static Obstacle of(const Error& error);
  };
  struct State {
    bool wanted = false;  // the pod's turn has come
    bool created = false;
    bool request_out = false;
    bool asks_out = false;     // the request in flight asks for the eviction
    bool answer_lost = false;  // the answer to one that asks for the eviction is lost
    bool sent = false;         // a request was sent that asks for the eviction
    unsigned refusals = 0;
    unsigned flips = 0;  // how often the intent of its request was changed
    TimePoint retry_at{};
    Backoff retry{BackoffOptions{}};
    std::optional<RequestSign> sign{};
    std::optional<TimePoint> silent_since{};
    std::string refused{};  // why the server will not accept the request
    std::string why{};      // why the pod is evicted as without a request
  };

  State& state_of(const std::string& pod_uid);
  void listen(State& state, const RequestFacts& facts, TimePoint now);
  RequestFacts facts_of(const k8s::Pod& pod, const State& state) const;
  const k8s::EvictionRequest* request_of(const k8s::Pod& pod) const;
  const k8s::EvictionProcess* process_of(const k8s::Pod& pod) const;
  void forget_turns(const std::map<std::string, TrackedPod>& pods, Node node);

  const Options& options_;
  Rng& rng_;
  std::function<WallTime()> server_now_;
  bool known_ = false;
  bool processes_known_ = false;
  std::optional<Obstacle> unusable_;
  std::optional<Obstacle> unreadable_;
  std::map<std::string, State> states_;                    // by UID of the pod
  std::map<std::string, k8s::EvictionRequest> requests_;   // by their UID
  std::map<std::string, k8s::EvictionProcess> processes_;  // by their UID
};

}  // namespace haulout::drain
