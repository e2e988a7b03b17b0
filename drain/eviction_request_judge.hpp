// Decides what the drain does next for a pod that has responders (`--eviction-requests`): create an EvictionRequest,
// wait for a responder, or evict the pod. EvictionRequestBook keeps what the decision depends on. Pure.
#pragma once

#include <string>

#include "k8s/eviction_request.hpp"
#include "retry/clock.hpp"

namespace haulout::drain {

// How long a responder that has answered may be silent: 20 minutes by the API (KEP-4563), and a minute more in which
// the controller passes the eviction on to the next responder.
inline constexpr Duration heartbeat_limit = std::chrono::minutes(21);

// What is known about the request for one pod.
struct RequestFacts {
  const k8s::EvictionRequest* request = nullptr;  // null: there is none
  const k8s::EvictionProcess* process = nullptr;  // null: there is none that has not ended
  bool known = false;                             // the requests that exist were listed
  bool answers_known = false;                     // so were the Evictions, or they cannot be read
  bool created = false;                           // this drain has created, or found, a request for the pod before
  Duration silence{};                             // since the last sign of a responder, or since the pod waits
  Duration limit{};                               // Options::eviction_request_limit
};

struct RequestJudgement {
  // `create` and `renew`: the pod waits, and such a request is to be sent. `renew` sets the intent of a request that
  // was withdrawn to Eviction again. `evict`: the pod is evicted as without a request, because of `why`.
  enum class Next { create, renew, wait, evict } next = Next::wait;
  std::string why{};
  Duration left{};  // while the pod waits: the time after which it is evicted if nothing happens
};

RequestJudgement judge_request(const RequestFacts& facts);

// The last sign that somebody works on the eviction of a pod: which responder has its turn, and its last heartbeat. The
// silence of a pod begins anew whenever this changes.
struct RequestSign {
  std::string responder{};  // empty: no responder has its turn
  std::optional<WallTime> heartbeat{};
  bool operator==(const RequestSign&) const = default;
};
RequestSign sign_of(const k8s::EvictionProcess* process);

}  // namespace haulout::drain
