// Turns from a FleetLock server: POST /v1/pre-reboot takes one, POST /v1/steady-state gives it back; the group is the
// pool. For credentials that may not write Leases. See slots.hpp for the port.
//
// Both requests are idempotent, so they are sent again freely. The protocol has no question, only these two demands:
// confirm() is pre-reboot once more, which for a holder changes nothing. So confirm() may only be called where a turn
// is wanted: whoever holds none would take one.
//
// A turn is confirmed and given back in the group in which it was taken, whatever pool the node has come into since:
// the server knows it by no other name. The record keeps that group for those who come after (see remember()).
//
// The turn is ours after a 200 and nothing else. A refusal that can be read is an answer: no turn, with the server's
// words. After a 5xx, or what no FleetLock server says, nobody knows: an error, which does not count as ours, nor as
// lost. Errors otherwise: those of http::Transport. Cancellable.
#pragma once

#include <functional>
#include <memory>

#include "agent/ports/slots.hpp"
#include "agent/slots/codec_fleetlock_json.hpp"
#include "agent/slots/slot_rules.hpp"
#include "http/client.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

struct FleetLockOptions {
  std::string prefix{};  // path of the base URL, without a final slash
  // The group of the node as it is now, [a-zA-Z0-9.-]+. Asked for each turn: its pool may change under the agent.
  std::function<Task<std::string>(TimePoint deadline)> group;
  std::string id{};                 // see fleetlock_id.hpp
  std::string server{"FleetLock"};  // for messages
};

class FleetLockSlots final : public Slots {
 public:
  // Borrows transport, clock and rng.
  FleetLockSlots(http::Transport& transport, Clock& clock, Rng& rng, FleetLockOptions options);

  std::string name() const override { return "fleetlock"; }
  void remember(const std::string& slot) override;
  Task<Turn> take(TimePoint deadline) override;
  Task<Turn> confirm(TimePoint deadline) override;
  Task<> release(TimePoint deadline) override;
  // The server tells nothing by itself: returns after a minute or so.
  boost::asio::awaitable<void> changed() override;

 private:
  using Answer = std::optional<FleetLockRefusal>;
  Task<Answer> post(std::string endpoint, std::string group, TimePoint deadline);
  Task<Answer> demand(std::string group, TimePoint deadline);
  // Of the turn that is ours, or else of the one that would be.
  Task<std::string> group(TimePoint deadline);
  Turn granted() const;
  std::string words_of(const FleetLockRefusal& refusal) const;

  http::Transport& transport_;
  Clock& clock_;
  Rng& rng_;
  FleetLockOptions options_;
  std::string held_;        // the group in which the last turn was demanded that was not given back; empty: none
  std::string unanswered_;  // the endpoint of a request whose answer never came: it may still be carried out
};

// The group that the server is asked for: the pool, which is the value of a label when `pool_label` is set.
// Errc::invalid when the Node has no such label, or the protocol does not allow the value as a group.
Result<std::string> fleetlock_group(const SlotGrouping& grouping, const std::string& node,
                                    const std::map<std::string, std::string>& node_labels);

// Client of the server at `url` (http or https, verified against the system's certificates), and the path of the URL
// for FleetLockOptions::prefix. Errc::invalid for what is no such URL.
struct FleetLockServer {
  std::unique_ptr<http::Client> client;
  std::string prefix;
};
Result<FleetLockServer> fleetlock_server(boost::asio::any_io_executor executor, Clock& clock, const std::string& url);

}  // namespace haulout::agent
