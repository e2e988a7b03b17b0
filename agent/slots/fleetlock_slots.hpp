// Slots on a FleetLock server: the messages of the protocol, the id of this machine, and the implementation of the
// port.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/hosts/host_root.hpp"
#include "agent/ports/slots.hpp"
#include "agent/slots/slot_rules.hpp"
#include "http/client.hpp"
#include "http/message.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Encodes requests and decodes responses of the FleetLock protocol, as coreos/zincati documents it. Pure.

// Returns {"client_params":{"id":…,"group":…}}.
std::string encode_fleetlock_request(std::string_view id, std::string_view group);

// The server's reason for refusing a request. Control characters are removed, so that the texts fit on one line.
struct FleetLockRefusal {
  int status = 0;     // HTTP status
  std::string kind;   // "lock_held", …; depends on the server
  std::string value;  // the server's message
};
// Returns nothing if the request succeeded: status 200, and the body is not an HTML page. Returns a refusal if the
// server sent one. Fails with Errc::decode or Errc::status for responses that no FleetLock server sends.
Result<std::optional<FleetLockRefusal>> judge_fleetlock_answer(const http::Response& response, WallTime now);

// The id by which a FleetLock server identifies this machine. The functions block only to read a small file.

// Derives an application-specific id, 32 hexadecimal digits, from systemd's machine id (machine-id(5)), with the
// algorithm of sd_id128_get_machine_app_specific(3), so that the machine id itself is not sent. The application is
// Zincati's, because some servers compute the same id to find the Node of a lock: poseidon/fleetlock keeps a lock if it
// does not find its Node. Fails with Errc::invalid if `machine_id` is not a machine id. Pure.
Result<std::string> fleetlock_id(std::string_view machine_id);

// Reads etc/machine-id of the host and derives the id. Returns the Node's UID if the file is missing or empty. Fails
// with Errc::unavailable if the file cannot be read. Fails with Errc::invalid if it does not contain a machine id, for
// example "uninitialized" during a first boot: after that boot the file would have another id.
Result<std::string> fleetlock_id(const HostRoot& root, const OwnNode& node);

struct FleetLockOptions {
  std::string prefix{};  // path of the base URL, without a final slash
  // Returns the current group of the node, [a-zA-Z0-9.-]+. Called for each slot, because the pool of the node may
  // change while the agent runs.
  std::function<Task<std::string>(TimePoint deadline)> group;
  std::string id{};                 // id of this machine, see fleetlock_id()
  std::string server{"FleetLock"};  // name of the server in messages
};

// Slots from a FleetLock server: POST /v1/pre-reboot takes a slot, POST /v1/steady-state releases it. The group is the
// pool. For credentials that may not write Leases. See agent/ports/slots.hpp for the port.
//
// Both requests are idempotent, so they can be repeated. The protocol has no request for the holder of a slot, so
// confirm() sends pre-reboot again, which changes nothing for a holder. It would give a slot to a node without one, so
// the agent may call confirm() only if it needs a slot.
//
// A slot is confirmed and released in the group and with the id with which it was taken, even if the pool of the node
// or the id of the machine has changed since, because the server knows the slot only by these. A machine gets another
// id when /etc/machine-id becomes readable for the agent, or is made anew. The record stores both for later processes
// (see remember()): "fleetlock/GROUP@ID".
//
// The node holds the slot only after a response with status 200. If the server refuses the slot with a message of the
// protocol, take() returns that the node has no slot, with the server's message. confirm() does the same; for the
// statuses 5xx, 408 and 429 the answer is uncertain, because the node may still hold its slot: coreos/airlock sends 500
// if other machines have all slots, and if it cannot reach its database. A response that no FleetLock server sends is
// an error. Other errors are those of http::Transport and of FleetLockOptions::group.
// Cancellable.
class FleetLockSlots final : public Slots {
 public:
  // Borrows transport, clock and rng.
  FleetLockSlots(http::Transport& transport, Clock& clock, Rng& rng, FleetLockOptions options);

  std::string name() const override { return "fleetlock"; }
  void remember(const std::string& slot) override;
  Task<Turn> take(TimePoint deadline) override;
  Task<Turn> confirm(TimePoint deadline) override;
  Task<> release(TimePoint deadline) override;
  // Returns after 24 to 36 seconds, because the server sends no notifications.
  boost::asio::awaitable<void> changed() override;

 private:
  using Answer = std::optional<FleetLockRefusal>;
  Task<Answer> post(std::string endpoint, FleetLockNames names, TimePoint deadline);
  Task<Answer> demand(FleetLockNames names, TimePoint deadline);
  // Returns the names of the slot that the node holds or may hold. If there is none, returns the node's current ones.
  Task<FleetLockNames> names(TimePoint deadline);
  Turn granted() const;
  std::string words_of(const FleetLockRefusal& refusal) const;

  http::Transport& transport_;
  Clock& clock_;
  Rng& rng_;
  FleetLockOptions options_;
  FleetLockNames held_;     // of the last slot that was requested and not released
  std::string unanswered_;  // endpoint of a request without a response; the server may still execute it
};

// Returns the group of the node: its pool, which is the value of a label if `pool_label` is set. Fails with
// Errc::invalid if the Node has no such label, or if the protocol does not allow the value as a group.
Result<std::string> fleetlock_group(const SlotGrouping& grouping, const std::string& node,
                                    const std::map<std::string, std::string>& node_labels);

// The client for a FleetLock server, which the caller owns. `prefix` is the path of its URL, for
// FleetLockOptions::prefix.
struct FleetLockServer {
  std::unique_ptr<http::Client> client;
  std::string prefix;
};
// Creates a client for the server at `url` (http or https, verified against the system's certificates). Fails with
// Errc::invalid if `url` is not such a URL.
Result<FleetLockServer> fleetlock_server(boost::asio::any_io_executor executor, Clock& clock, const std::string& url);

}  // namespace haulout::agent
