// The server's side of the FleetLock protocol: gives machines outside of the cluster slots of a pool, as the Leases
// that the agents use. So these machines and the nodes of the pool share one limit.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "agent/slots/slot_rules.hpp"
#include "http/message.hpp"
#include "k8s/client.hpp"

namespace haulout::agent {

// The functions below read requests and write responses. Pure.

// What `client_params` of a request contains.
struct FleetLockParams {
  std::string id;
  std::string group;
};
// Fails with Errc::decode if the body is not JSON, or if a field is absent or not a string.
Result<FleetLockParams> decode_fleetlock_request(std::string_view body);
// Returns {"kind":…,"value":…}.
std::string encode_fleetlock_answer(std::string_view kind, std::string_view value);

// A request for a slot, or to give it back.
struct FleetLockCall {
  bool take = false;
  std::string id;
  std::string pool;
};

// The response, and whom it is about, for the log. The fields id and pool are empty if the request is not valid.
struct FleetLockAnswer {
  int status = 200;
  std::string kind;   // for programs: "taken", "lock_held", …
  std::string value;  // for people
  std::string id{};
  std::string pool{};
  bool changed = false;  // a slot was taken or given back
};
http::Response response_of(const FleetLockAnswer& answer);

// Reads a request: POST /v1/pre-reboot or POST /v1/steady-state, with the header that the protocol demands. Returns the
// refusal if it is not valid. A slot can be taken in one of `pools` only, because each pool has slots of its own: a
// client that could name any pool could fill the namespace with Leases. A slot can be given back in any pool, so that
// no machine keeps the slot of a pool that is not served any more.
std::variant<FleetLockCall, FleetLockAnswer> read_fleetlock_call(const http::Request& request,
                                                                 const std::vector<std::string>& pools);

struct FleetLockServiceOptions {
  std::string ns = "haulout";
  std::vector<std::string> pools{std::string(default_pool)};
  std::size_t limit = 1;  // how many slots of a pool may be held when this server gives one, by nodes or machines
};

// Answers the requests of the protocol. Everything that it knows is in the API server, so several servers may run, and
// one that is killed loses nothing: a client that got no answer asks again.
//
// pre-reboot creates the Lease with the lowest free index below the limit, as LeaseSlots does. Of several servers and
// agents that try at the same time, the API server lets only one create a name. Then it lists the Leases again, and
// gives the slot back if more are held than the limit allows. For a machine that holds a slot, the answer is 200 and
// nothing changes, also if the limit was lowered since: it may be rebooting already. steady-state deletes the Leases of
// the machine in the pool; the answer is 200 also if it holds none.
//
// Only Leases count, because the server reads no Nodes: a node that is unavailable without a slot does not keep a
// machine from getting one. The agents count such nodes and the slots of machines. Waves, orders and limits of zones
// do not apply to machines, which are in no zone. The pool control-plane has one slot at most, as for the agents.
//
// If the API server does not answer as it should, the answer is 503, never 200.
class FleetLockService {
 public:
  // Borrows the client.
  FleetLockService(k8s::Client& client, FleetLockServiceOptions options)
      : client_(client), options_(std::move(options)) {}

  // Never fails. Cancellable: the client then gets no answer, and does not know whether it has the slot.
  boost::asio::awaitable<FleetLockAnswer> answer(http::Request request);

 private:
  Task<FleetLockAnswer> take(FleetLockCall call, TimePoint deadline);
  Task<FleetLockAnswer> give_back(FleetLockCall call, TimePoint deadline);
  // Returns the pool as its Leases show it.
  Task<GroupView> look(SlotGroup group, TimePoint deadline);
  Task<std::vector<k8s::Lease>> held(SlotGroup group, OwnNode machine, TimePoint deadline);
  // Deletes all Leases of the machine in the pool. Returns whether there were any.
  Task<bool> remove_all(SlotGroup group, OwnNode machine, TimePoint deadline);

  k8s::Client& client_;
  FleetLockServiceOptions options_;
  // Machine and pool of each request that is being answered. A second one must wait: if a machine gave up its request
  // for a slot and releases it, the release must not overtake the request.
  std::set<std::pair<std::string, std::string>> busy_;
};

}  // namespace haulout::agent
