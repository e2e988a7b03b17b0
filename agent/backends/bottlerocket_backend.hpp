// The back end for Bottlerocket, a client of Bottlerocket's API, and the decoders of its responses.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "agent/hosts/host_root.hpp"
#include "agent/ports/backend.hpp"
#include "http/client.hpp"
#include "http/transport.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Decodes the responses of Bottlerocket's API (apiserver, thar-be-updates) that the agent reads. Pure. Ignores unknown
// fields. Fails with Errc::decode if a required field is missing or has the wrong type.
struct BottlerocketStatus {
  enum class State { idle, available, staged, ready };
  // The result of the last command. Commands are asynchronous; a new result shows that a command has ended.
  struct LastCommand {
    std::string type;       // refresh, prepare, activate, deactivate
    std::string status;     // Success, Failed, Unknown
    std::string timestamp;  // differs after each command
    std::string error;      // its stderr as one line, cut at 200 bytes
    bool operator==(const LastCommand&) const = default;
  };

  State state = State::idle;
  std::string chosen{};  // version that the settings select from the available ones; empty if none
  std::string staged{};  // version on the other partition; empty if none
  bool staged_boots_next = false;
  std::optional<LastCommand> last{};
  bool operator==(const BottlerocketStatus&) const = default;
};

// Decodes the response to GET /updates/status.
Result<BottlerocketStatus> decode_bottlerocket_status(std::string_view body);
// Decodes the response to GET /os: the running version.
Result<std::string> decode_bottlerocket_version(std::string_view body);

// The commands of an update: look for updates, write one to the other partition, boot from that partition next.
enum class BottlerocketAction { refresh, prepare, activate };

// A client for the part of Bottlerocket's API that concerns updates. Actions are asynchronous: the server accepts an
// action at once, and the action has ended when the status has a most_recent_command with another timestamp. run()
// waits for that.
//
// Errors name the request. Fails with Errc::status and the HTTP status: 404 if there is no such update (but status()
// then returns `idle`), 409 if the state of the update does not allow the request, others as in HTTP. Fails with
// Errc::unavailable if the action failed (with the end of its stderr), or if another client ran a command at the same
// time. Also fails with Errc::decode, Errc::timeout and the errors of the transport. While another update command holds
// the lock (423), repeats the request each second. All operations are cancellable. Borrows transport and clock.
class BottlerocketApi {
 public:
  BottlerocketApi(http::Transport& transport, Clock& clock) : transport_(transport), clock_(clock) {}

  // GET /os: returns the running version.
  Task<std::string> version(TimePoint deadline);
  // GET /updates/status: returns the status. Before the first command of a boot the server responds with 404; the
  // result is then `idle` without a last command.
  Task<BottlerocketStatus> status(TimePoint deadline);
  // POST /actions/…: returns the status after the command has succeeded.
  Task<BottlerocketStatus> run(BottlerocketAction action, TimePoint deadline);

 private:
  Task<http::Response> send(std::string method, std::string target, TimePoint deadline);

  http::Transport& transport_;
  Clock& clock_;
};

// Creates a client for /run/api.sock beneath the host's root. Fails as HostRoot::locate() does.
Result<std::unique_ptr<http::Client>> bottlerocket_client(boost::asio::any_io_executor executor, Clock& clock,
                                                          const HostRoot& root);

// Returns the need for a reboot by the status. Pure. `ready`: yes, to the version on the other partition. `available`
// and `staged`: yes, to the selected version; `staged` without a selected version is no, because the update was
// withdrawn. `idle`: no, or unknown if the last refresh failed. A status that contradicts itself is unknown.
Pending bottlerocket_answer(const BottlerocketStatus& status);

// The back end for Bottlerocket: image updates through the API on /run/api.sock. Bottlerocket looks for updates only on
// request, so pending() refreshes the list of updates regularly. apply() requests that the image is written to the
// other partition and marked for the next boot.
//
// The transport must reach the API (see bottlerocket_client()). Transport, clock and Rng must outlive the back end. All
// coroutines are cancellable; booted() and apply() fail as BottlerocketApi does.
class BottlerocketBackend final : public Backend {
 public:
  BottlerocketBackend(http::Transport& transport, Clock& clock, Rng& rng)
      : api_(transport, clock), clock_(clock), rng_(rng) {}

  std::string name() const override { return "bottlerocket"; }
  boost::asio::awaitable<Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  // An empty target means the version that is installed for the next boot or, if there is none, the selected one. Fails
  // with Errc::invalid if another version is available or installed by now; then call pending() again.
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  Task<BottlerocketStatus> current(TimePoint deadline);
  bool refresh_is_due(const BottlerocketStatus& status) const;

  BottlerocketApi api_;
  Clock& clock_;
  Rng& rng_;
  TimePoint next_refresh_ = TimePoint::min();
  // The API reports only the last command, so a refresh and an apply() must not run commands at the same time.
  bool refreshing_ = false, applying_ = false;
};

}  // namespace haulout::agent
