#include "agent/slots/fleetlock_service.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "agent/slots/slot_leases.hpp"
#include "base/ascii.hpp"
#include "base/plain_text.hpp"
#include "base/scope_exit.hpp"
#include "base/text.hpp"
#include "k8s/label_selector.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Time limit for all requests to the API server that one answer needs. Clients wait for about 30 s.
constexpr Duration answer_limit = std::chrono::seconds(15);
// How often a request tries to create a Lease while others take the slots that it has seen free.
constexpr int most_attempts = 5;
constexpr std::size_t longest_id = 128;

bool is_id(std::string_view id) {
  return !id.empty() && id.size() <= longest_id && std::all_of(id.begin(), id.end(), [](char c) {
    return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
  });
}

FleetLockAnswer about(const FleetLockCall& call, FleetLockAnswer answer) {
  answer.id = call.id;
  answer.pool = call.pool;
  return answer;
}

std::vector<k8s::Lease> held_in(const GroupView& view, const OwnNode& machine) {
  std::vector<k8s::Lease> own;
  std::copy_if(view.slots.begin(), view.slots.end(), std::back_inserter(own),
               [&](const k8s::Lease& lease) { return held_by(lease, machine) && slot_index(view.group, lease.name); });
  return own;
}

FleetLockAnswer lock_held(std::string why) {
  return {423, "lock_held", std::move(why)};
}

}  // namespace

http::Response response_of(const FleetLockAnswer& answer) {
  http::Response response;
  response.status = answer.status;
  response.headers.set("Content-Type", "application/json");
  response.headers.set("Cache-Control", "no-store");
  if (answer.status == 405) response.headers.set("Allow", "POST");
  response.body = encode_fleetlock_answer(answer.kind, answer.value);
  return response;
}

std::variant<FleetLockCall, FleetLockAnswer> read_fleetlock_call(const http::Request& request,
                                                                 const std::vector<std::string>& pools) {
  const bool take = request.target == "/v1/pre-reboot";
  if (!take && request.target != "/v1/steady-state")
    return FleetLockAnswer{404, "not_found", "there is nothing at this path: use /v1/pre-reboot or /v1/steady-state"};
  if (request.method != "POST")
    return FleetLockAnswer{405, "method_not_allowed", "this path takes requests with the method POST only"};
  if (request.headers.find("fleet-lock-protocol") != std::string_view("true"))
    return FleetLockAnswer{400, "missing_header", "the request lacks the header fleet-lock-protocol: true"};
  auto params = decode_fleetlock_request(request.body);
  if (!params) return FleetLockAnswer{400, "invalid_body", params.error().message()};
  if (!is_id(params->id))
    return FleetLockAnswer{400, "invalid_id",
                           fmt::format("\"{}\" is not an id: it must have 1 to {} letters, digits, \"-\", \"_\" and "
                                       "\".\"",
                                       one_line(params->id, longest_id), longest_id)};
  if (!k8s::is_label_name(params->group))
    return FleetLockAnswer{400, "invalid_group",
                           fmt::format("\"{}\" is not the name of a pool: it must have at most 63 letters, digits, "
                                       "\"-\", \"_\" and \".\", and begin and end with a letter or a digit",
                                       one_line(params->group, longest_id))};
  if (take && std::find(pools.begin(), pools.end(), params->group) == pools.end())
    return FleetLockAnswer{403, "unknown_group",
                           fmt::format("this server gives no slots of pool {}: start it with --pool={}, or set the "
                                       "group of the machine to {}",
                                       params->group, params->group, joined(pools, " or "))};
  return FleetLockCall{take, std::move(params->id), std::move(params->group)};
}

asio::awaitable<FleetLockAnswer> FleetLockService::answer(http::Request request) {
  auto read = read_fleetlock_call(request, options_.pools);
  if (auto* refusal = std::get_if<FleetLockAnswer>(&read)) co_return std::move(*refusal);
  const auto call = std::get<FleetLockCall>(std::move(read));
  const std::pair key(call.id, call.pool);
  if (!busy_.insert(key).second)
    co_return about(call, {503, "busy", "another request of this machine is being answered: ask again"});
  const ScopeExit done([this, &key] { busy_.erase(key); });
  const TimePoint deadline = saturating_add(client_.clock().now(), answer_limit);
  auto answered = call.take ? co_await take(call, deadline) : co_await give_back(call, deadline);
  if (answered) co_return about(call, *std::move(answered));
  co_return about(call, {503, "api_unavailable",
                         fmt::format("the Kubernetes API server has not carried this out: {}; ask again",
                                     one_line(answered.error().message()))});
}

Task<FleetLockAnswer> FleetLockService::take(FleetLockCall call, TimePoint deadline) {
  const OwnNode machine = outside_machine(call.id);
  const SlotGroup group{call.pool};
  std::vector<k8s::Lease> unlisted;  // see LeaseSlots
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    CO_TRY(GroupView view, co_await look(group, deadline));
    if (const auto own = held_in(view, machine); !own.empty())
      co_return FleetLockAnswer{200, "held", fmt::format("this machine holds the slot {}", own.front().name)};
    view.slots.insert(view.slots.end(), unlisted.begin(), unlisted.end());
    const SlotChoice choice = choose_slot(view, machine);
    if (!choice.take) co_return lock_held(choice.why);
    // A free index above the limit exists only while a node holds several slots. Not to use it makes the names alone
    // limit what servers give, also if one is killed before it looks again.
    if (*choice.take >= view.limit)
      co_return lock_held(
          fmt::format("all {} of {} are taken, some of them by the same node: delete the Leases that "
                      "it does not need",
                      count_of(view.limit, "slot"), group.words()));
    k8s::Lease lease = slot_lease(options_.ns, group, *choice.take, machine, client_.server_now());
    const std::string name = lease.name;
    auto created = co_await client_.create<k8s::Lease>(std::move(lease), deadline);
    if (created) {
      CO_TRY(view, co_await look(group, deadline));
      auto why = must_give_back(view, machine);
      if (!why) co_return FleetLockAnswer{200, "taken", "this machine has got the slot " + name, {}, {}, true};
      CO_CHECK(co_await remove_all(group, machine, deadline));
      co_return lock_held(*std::move(why));
    }
    if (!k8s::is_already_exists(created.error())) co_return std::move(created).error();
    auto other = co_await client_.get<k8s::Lease>(options_.ns, name, deadline);
    if (!other && !k8s::is_gone(other.error())) co_return std::move(other).error();
    if (other && is_unlisted(*other)) unlisted.push_back(*std::move(other));
  }
  co_return FleetLockAnswer{503, "busy", "others have taken each slot that was free: ask again"};
}

Task<FleetLockAnswer> FleetLockService::give_back(FleetLockCall call, TimePoint deadline) {
  CO_TRY(const bool held, co_await remove_all({call.pool}, outside_machine(call.id), deadline));
  if (held) co_return FleetLockAnswer{200, "released", "the slot of this machine is free", {}, {}, true};
  co_return FleetLockAnswer{200, "not_held", fmt::format("this machine holds no slot of pool {}", call.pool)};
}

Task<GroupView> FleetLockService::look(SlotGroup group, TimePoint deadline) {
  // All pools, because a person may have changed the label of a Lease: its name still takes a slot of this pool.
  CO_TRY(auto leases, co_await list_slots(client_, options_.ns, deadline));
  GroupView view{std::move(group), std::move(leases)};
  view.limit =
      is_control_plane(pool_named({}, view.group.pool)) ? std::min<std::size_t>(1, options_.limit) : options_.limit;
  co_return view;
}

Task<std::vector<k8s::Lease>> FleetLockService::held(SlotGroup group, OwnNode machine, TimePoint deadline) {
  CO_TRY(const GroupView view, co_await look(std::move(group), deadline));
  co_return held_in(view, machine);
}

Task<bool> FleetLockService::remove_all(SlotGroup group, OwnNode machine, TimePoint deadline) {
  co_return co_await delete_slots(
      client_, [this, &group, &machine](TimePoint until) { return held(group, machine, until); }, deadline);
}

}  // namespace haulout::agent
