#include "agent/slots/fleetlock_slots.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "agent/node/pool.hpp"
#include "base/ascii.hpp"
#include "base/plain_text.hpp"
#include "base/text.hpp"
#include "http/hmac.hpp"

namespace haulout::agent {

namespace {

constexpr std::size_t id_bytes = 16;
constexpr std::size_t file_limit = 100;
constexpr std::string_view file = "/etc/machine-id";
// Zincati's application id, from coreos/zincati, src/identity/mod.rs.
constexpr std::string_view application = "de35106b6ec24688b63afddaa156679b";

// Decodes a machine id. Returns an empty string if it is not one.
std::string bytes_of(std::string_view hexadecimal) {
  if (hexadecimal.size() != 2 * id_bytes) return {};
  std::string bytes;
  for (std::size_t i = 0; i < hexadecimal.size(); i += 2) {
    const auto value = parse_number<unsigned>(hexadecimal.substr(i, 2), 16);
    if (!value) return {};
    bytes += static_cast<char>(*value);
  }
  // An id of zeros is invalid (machine-id(5)), so it does not count as an id.
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; }) ? std::string() : bytes;
}

}  // namespace

Result<std::string> fleetlock_id(std::string_view machine_id) {
  const std::string machine = bytes_of(machine_id);
  if (machine.empty())
    return Error(Errc::invalid, fmt::format("\"{}\" is not a machine id (32 hexadecimal digits, not all zero); run "
                                            "systemd-machine-id-setup on the machine to create one",
                                            one_line(machine_id, 40)));
  auto digest = http::hmac_sha256(machine, bytes_of(application));
  // Sets version and variant bits of a random UUID (RFC 4122 4.4), as systemd does.
  digest[6] = static_cast<std::uint8_t>((digest[6] & 0x0f) | 0x40);
  digest[8] = static_cast<std::uint8_t>((digest[8] & 0x3f) | 0x80);
  std::string id;
  for (std::size_t i = 0; i < id_bytes; ++i) id += fmt::format("{:02x}", digest[i]);
  return id;
}

Result<std::string> fleetlock_id(const HostRoot& root, const OwnNode& node) {
  const auto text = root.read(file, file_limit);
  if (!text) return text.error();
  const std::string machine_id = *text ? first_line(**text) : std::string();
  if (machine_id.empty()) return node.uid;
  auto id = fleetlock_id(machine_id);
  if (!id) return std::move(id).error().with_context(root.display(file));
  return id;
}

namespace asio = boost::asio;

namespace {

constexpr std::string_view pre_reboot = "/v1/pre-reboot";
constexpr std::string_view steady_state = "/v1/steady-state";
// "423 Locked": servers send it if another machine holds the slot.
constexpr int locked = 423;
// Time in which the server may still execute an earlier request after the agent has stopped waiting for its response.
constexpr Duration settling = std::chrono::seconds(5);
// Limits of the random time after which changed() returns.
constexpr Duration look_from = std::chrono::seconds(24);
constexpr Duration look_to = std::chrono::seconds(36);
constexpr std::size_t answer_limit = std::size_t{64} * 1024;

// Returns true if the refusal means that the node has no slot, false if the server is busy or has a problem.
bool denies(const FleetLockRefusal& refusal) {
  return refusal.status < 500 && refusal.status != 408 && refusal.status != 429;
}

bool never_sent(const Error& error) {
  return error.code() == Errc::dns || error.code() == Errc::unreachable;
}

}  // namespace

FleetLockSlots::FleetLockSlots(http::Transport& transport, Clock& clock, Rng& rng, FleetLockOptions options)
    : transport_(transport), clock_(clock), rng_(rng), options_(std::move(options)) {}

void FleetLockSlots::remember(const std::string& slot) {
  if (!held_.group.empty()) return;
  held_ = fleetlock_names(slot);
  if (held_.id.empty()) held_.id = options_.id;
}

Task<FleetLockNames> FleetLockSlots::names(TimePoint deadline) {
  if (!held_.group.empty()) co_return held_;
  CO_TRY(std::string group, co_await options_.group(deadline));
  co_return FleetLockNames{std::move(group), options_.id};
}

Task<FleetLockSlots::Answer> FleetLockSlots::post(std::string endpoint, FleetLockNames names, TimePoint deadline) {
  // An earlier request to the other endpoint got no response, so the server may still execute it. Wait for a while: if
  // the server executed it after this request, it would undo this request unnoticed.
  if (!unanswered_.empty() && unanswered_ != endpoint)
    co_await clock_.sleep_until(std::min(deadline, saturating_add(clock_.now(), settling)));
  http::Request request;
  request.method = "POST";
  request.target = options_.prefix + endpoint;
  request.headers.set("fleet-lock-protocol", "true");
  request.headers.set("Content-Type", "application/json");
  request.headers.set("Accept", "application/json");
  request.body = encode_fleetlock_request(names.id, names.group);
  unanswered_ = endpoint;
  auto response = co_await transport_.round_trip(std::move(request), deadline);
  const std::string who = options_.server + ", " + endpoint;
  if (response || never_sent(response.error())) unanswered_.clear();
  if (!response) co_return std::move(response).error().with_context(who);
  auto answer = judge_fleetlock_answer(*response, clock_.wall_now());
  if (!answer) co_return std::move(answer).error().with_context(who);
  co_return std::move(*answer);
}

Task<FleetLockSlots::Answer> FleetLockSlots::demand(FleetLockNames names, TimePoint deadline) {
  // `held_` is set before the response arrives, because the server may grant the slot although its response is lost.
  held_ = names;
  co_return co_await post(std::string(pre_reboot), std::move(names), deadline);
}

Turn FleetLockSlots::granted() const {
  return Turn{.ours = true, .slot = fleetlock_slot(held_)};
}

std::string FleetLockSlots::words_of(const FleetLockRefusal& refusal) const {
  return fmt::format("{} gives group {} no slot: {} ({}, HTTP {})", options_.server, held_.group, refusal.value,
                     refusal.kind, refusal.status);
}

Task<Turn> FleetLockSlots::take(TimePoint deadline) {
  CO_TRY(std::string group, co_await options_.group(deadline));
  // Release a slot of another group first: this node cannot use it, and the nodes of that group need it.
  if (!held_.group.empty() && held_.group != group) CO_CHECK(co_await release(deadline));
  FleetLockNames wanted = held_.group.empty() ? FleetLockNames{std::move(group), options_.id} : held_;
  CO_TRY(const Answer refusal, co_await demand(std::move(wanted), deadline));
  // Some servers send 500 if all slots are taken, so any refusal means "no slot" here.
  co_return refusal ? Turn{.why = words_of(*refusal)} : granted();
}

Task<Turn> FleetLockSlots::confirm(TimePoint deadline) {
  CO_TRY(FleetLockNames held, co_await names(deadline));
  CO_TRY(const Answer refusal, co_await demand(std::move(held), deadline));
  if (!refusal) co_return granted();
  co_return Turn{.why = words_of(*refusal), .uncertain = !denies(*refusal)};
}

Task<> FleetLockSlots::release(TimePoint deadline) {
  CO_TRY(const FleetLockNames held, co_await names(deadline));
  CO_TRY(const Answer refusal, co_await post(std::string(steady_state), held, deadline));
  // 423 is a success, too: the protocol demands 200 for a node that holds no slot, but poseidon/fleetlock sends 423.
  if (refusal && refusal->status != locked)
    co_return Error(Errc::unavailable,
                    fmt::format("{} does not release the slot of group {}: {} ({}, HTTP {})", options_.server,
                                held.group, refusal->value, refusal->kind, refusal->status));
  held_ = {};
  co_return Result<>();
}

asio::awaitable<void> FleetLockSlots::changed() {
  co_await clock_.sleep_until(clock_.now() + rng_.between(look_from, look_to));
}

Result<std::string> fleetlock_group(const SlotGrouping& grouping, const std::string& node,
                                    const std::map<std::string, std::string>& node_labels) {
  // Groups are configured on the server, so control-plane nodes have no group of their own by default.
  const SlotGrouping only_pool{grouping.pool.empty() ? std::string(default_pool) : grouping.pool, grouping.pool_label};
  auto groups = groups_of(only_pool, node, node_labels);
  if (!groups) return std::move(groups).error();
  std::string group = groups->back().pool;
  const bool fits =
      std::all_of(group.begin(), group.end(), [](char c) { return is_alphanumeric(c) || c == '.' || c == '-'; });
  if (fits) return group;
  return Error(Errc::invalid,
               fmt::format("pool \"{}\" cannot be a group of FleetLock, which takes letters, digits, dots "
                           "and hyphens: give label {} of Node {} another value",
                           group, grouping.pool_label, node));
}

Result<FleetLockServer> fleetlock_server(asio::any_io_executor executor, Clock& clock, const std::string& url) {
  FleetLockServer server;
  auto endpoint = http::parse_endpoint(url, &server.prefix);
  if (!endpoint) return std::move(endpoint).error();
  http::ClientOptions options;
  options.body_limit = answer_limit;
  options.max_idle = 1;
  auto client = http::Client::create(std::move(executor), clock, std::move(*endpoint), {}, options);
  if (!client) return std::move(client).error();
  server.client = std::move(*client);
  return server;
}

}  // namespace haulout::agent
