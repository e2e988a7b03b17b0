// The part of Bottlerocket's API that concerns updates. Its actions are asynchronous: the server accepts an action at
// once, and the action has ended when the status shows another most_recent_command. run() waits for that.
//
// Errors name the request. Errc::status has the HTTP status: 404 if there is no (such) update, 409 if the state of the
// update does not allow the request, others as in HTTP. Errc::unavailable: the action failed (with the end of its
// stderr), or another client ran a command at the same time. Errc::decode, Errc::timeout and the errors of the
// transport are possible, too. While another update command holds the lock (423), the request is repeated each second.
// All operations are cancellable. Borrows transport and clock.
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

  // GET /os: the version that is running.
  Task<std::string> version(TimePoint deadline);
  // GET /updates/status. Before the first command of a boot the server answers 404; the result is then `idle` without a
  // last command.
  Task<BottlerocketStatus> status(TimePoint deadline);
  // POST /actions/…; returns the status after the command has succeeded.
  Task<BottlerocketStatus> run(BottlerocketAction action, TimePoint deadline);

 private:
  Task<http::Response> send(std::string method, std::string target, TimePoint deadline);

  http::Transport& transport_;
  Clock& clock_;
};

// Client for /run/api.sock beneath the host's root. Errors: see HostRoot::locate.
Result<std::unique_ptr<http::Client>> bottlerocket_client(boost::asio::any_io_executor executor, Clock& clock,
                                                          const HostRoot& root);

}  // namespace haulout::agent
