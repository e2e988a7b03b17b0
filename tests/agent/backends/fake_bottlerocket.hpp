// Simulates the update API of Bottlerocket as apiserver and thar-be-updates implement it. Commands are accepted at once
// and hold the update lock until they are done. Their results appear in the status. This class only answers requests,
// and the test chooses the transport. Borrows the clock. No I/O.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "http/message.hpp"
#include "retry/clock.hpp"

namespace haulout::testing {

class FakeBottlerocket {
 public:
  explicit FakeBottlerocket(const Clock& clock) : clock_(clock) {}

  std::string running = "1.15.1";
  std::string published;             // newest version in the repository; empty if there is no update
  Duration work{};                   // duration of each command
  std::set<std::string> failing;     // cmd_types that fail
  std::set<std::string> hanging;     // cmd_types whose result never appears
  int refusal = 0;                   // HTTP status for every action; 0 for normal answers
  std::string status_body;           // body that replaces the status, unless it is empty
  std::string intruder;              // cmd_type that another client runs right after each command of the agent
  std::vector<std::string> actions;  // cmd_types accepted so far
  TimePoint locked_until{};          // time until which another client holds the update lock

  std::string state = "Idle", chosen, staged;
  bool boots_next = false;

  http::Response answer(const http::Request& request) {
    settle();
    if (request.method == "GET" && request.target == "/os")
      return json(200, {{"version_id", running}, {"arch", "x86_64"}});
    if (request.method == "GET" && request.target == "/updates/status") return status();
    const std::vector<std::pair<std::string, std::string>> targets = {{"/actions/refresh-updates", "refresh"},
                                                                      {"/actions/prepare-update", "prepare"},
                                                                      {"/actions/activate-update", "activate"}};
    for (const auto& [target, type] : targets) {
      if (request.method == "POST" && request.target == target) return command(type);
    }
    return text(404, "no such route");
  }

 private:
  using Json = nlohmann::json;

  static http::Response text(int status, std::string body) { return {status, {}, std::move(body)}; }
  static http::Response json(int status, const Json& body) { return text(status, body.dump()); }
  static Json image(const std::string& version) {
    return version.empty() ? Json() : Json{{"arch", "x86_64"}, {"version", version}, {"variant", "aws-k8s-1.31"}};
  }
  bool locked() const { return clock_.now() < std::max(busy_until_, locked_until); }

  http::Response status() {
    if (locked()) return text(423, "Update lock held");
    if (!status_body.empty()) return text(200, status_body);
    if (last_.is_null()) return text(404, "Update status is uninitialized");
    Json available = Json::array();
    if (!published.empty()) available.push_back(published);
    const Json staging = staged.empty() ? Json() : Json{{"image", image(staged)}, {"next_to_boot", boots_next}};
    return json(200, {{"update_state", state},
                      {"available_updates", available},
                      {"chosen_update", image(chosen)},
                      {"active_partition", {{"image", image(running)}, {"next_to_boot", !boots_next}}},
                      {"staging_partition", staging},
                      {"most_recent_command", last_}});
  }

  http::Response command(const std::string& type) {
    if (locked()) return text(423, "Update lock held");
    if (refusal != 0) return text(refusal, "because the test says so");
    const bool may_prepare = state == "Available" || state == "Staged";
    if ((type == "prepare" && !may_prepare) || (type == "activate" && state != "Staged"))
      return text(409, "Update action not allowed according to update state");
    if (type == "prepare" && chosen.empty()) return text(404, "Update does not exist");
    if (type == "activate" && staged.empty()) return text(404, "No image staged to inactive partition");
    actions.push_back(type);
    current_ = type;
    busy_until_ = clock_.now() + work;
    return text(204, "");
  }

  // Applies the results of a command that is done by now.
  void settle() {
    if (current_.empty() || clock_.now() < busy_until_) return;
    const std::string type = std::exchange(current_, "");
    if (hanging.contains(type)) return;
    const bool failed = failing.contains(type);
    record(type, failed);
    if (type == "refresh") refresh(failed);
    if (type == "prepare" && !failed) {
      state = "Staged";
      staged = chosen;
      boots_next = false;
    }
    if (type == "activate" && !failed) {
      state = "Ready";
      boots_next = true;
    }
    if (!intruder.empty()) record(intruder, false);
  }
  void refresh(bool failed) {
    if (!failed) chosen = published == running ? "" : published;
    if (state == "Idle" || state == "Available") state = failed || chosen.empty() ? "Idle" : "Available";
  }
  void record(const std::string& type, bool failed) {
    last_ = {{"cmd_type", type},
             {"cmd_status", failed ? "Failed" : "Success"},
             {"timestamp", "2026-01-01T00:00:00." + std::to_string(++commands_) + "Z"},
             {"exit_status", failed ? 1 : 0},
             {"stderr", failed ? "updog: no route to host\n" : ""}};
  }

  const Clock& clock_;
  Json last_;
  std::string current_;
  TimePoint busy_until_{};
  int commands_ = 0;
};

}  // namespace haulout::testing
