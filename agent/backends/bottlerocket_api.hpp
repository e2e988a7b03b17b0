// Bottlerocket's API, as far as updates go. Its actions are asynchronous: accepted at once, and over when the status
// shows another most_recent_command; run() waits for that.
//
// Errors name the request. Errc::status with the HTTP status: 404 there is no (such) update, 409 the update is in a
// state that does not allow this, others as HTTP has them; Errc::unavailable: the action ran and failed, with the end
// of its stderr; Errc::decode; Errc::timeout; and those of the transport. While another update command holds the lock
// (423) it is asked again each second. All operations may be cancelled. Transport and clock must outlive it.
#pragma once

#include <boost/asio/any_io_executor.hpp>

#include "agent/backends/codec_bottlerocket_json.hpp"
#include "agent/hosts/host_root.hpp"
#include "http/client.hpp"
#include "http/transport.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

enum class BottlerocketAction { refresh, prepare, activate };

class BottlerocketApi {
 public:
  BottlerocketApi(http::Transport& transport, Clock& clock) : transport_(transport), clock_(clock) {}

  // GET /os: the version that runs.
  Task<std::string> version(TimePoint deadline);
  // GET /updates/status. Before the first command of a boot there is none (404): that is an idle one without a command.
  Task<BottlerocketStatus> status(TimePoint deadline);
  // POST /actions/…, and the status once it has succeeded.
  Task<BottlerocketStatus> run(BottlerocketAction action, TimePoint deadline);

 private:
  Task<http::Response> send(std::string method, std::string target, TimePoint deadline);

  http::Transport& transport_;
  Clock& clock_;
};

// Client of /run/api.sock beneath the host's root. Errors: see HostRoot::locate.
Result<std::unique_ptr<http::Client>> bottlerocket_client(boost::asio::any_io_executor executor, Clock& clock,
                                                          const HostRoot& root);

}  // namespace haulout::agent
