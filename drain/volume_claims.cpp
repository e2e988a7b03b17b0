// Drain finds out whose the volumes are that are attached to its node: each PersistentVolume names its claim, and where
// no pod uses that one the Node tells whether somebody still has the volume.
#include "drain/drain_impl.hpp"
#include "drain/insist.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// Neither waiting nor asking once more helps.
bool is_final(const Error& error) {
  return !may_heal(error) && !k8s::is_forbidden(error);
}

}  // namespace

// "namespace/name". Empty: no claim has it, or there is no such PersistentVolume.
Task<std::string> Drain::Impl::claim_of(std::string name, TimePoint limit) {
  const auto volume = co_await client_.get_persistent_volume(name, std::min(limit, within(request_timeout)));
  if (!volume && !k8s::is_gone(volume.error())) co_return volume.error();
  volumes_resolved_ = true;
  // A claimRef that somebody has written by hand may lack either.
  if (!volume || volume->claim_name.empty() || volume->claim_ns.empty()) co_return std::string();
  std::string key = volume->claim_ns + "/" + volume->claim_name;
  if (!may_be_of_an_earlier_claim(*volume)) co_return key;
  const auto claim = co_await client_.get_persistent_volume_claim(volume->claim_ns, volume->claim_name,
                                                                  std::min(limit, within(request_timeout)));
  if (claim) co_return is_volume_of(*volume, *claim) ? key : std::string();
  // It went with its pod or its namespace, or may not be seen: then the volume is waited for as what it says it is.
  const bool refused = k8s::is_forbidden(claim.error()) && questions_.refusals(name) > 0;
  if (refused || k8s::is_gone(claim.error())) co_return key;
  co_return claim.error();
}

// Returns why they may not be read at all, once that is certain: the first refusal after a reconnect proves nothing,
// and none proves anything of a right that we have had.
asio::awaitable<std::optional<Error>> Drain::Impl::ask_whose(std::string volume, TimePoint limit) {
  auto claim = co_await claim_of(volume, limit);
  if (claim) {
    questions_.answered(volume);
    volumes_.resolved(volume, *std::move(claim));
    co_return std::nullopt;
  }
  if (cut_off(claim.error())) co_return std::nullopt;
  questions_.failed(volume, claim.error(), k8s::is_forbidden(claim.error()), now(), rng_);
  if (volumes_resolved_ || questions_.refusals(volume) < 2) co_return std::nullopt;
  if (!requires_volumes()) volumes_error_ = claim.error();
  co_return claim.error();
}

std::optional<std::string> Drain::Impl::due_question() {
  questions_.want(volumes_.unresolved());
  return now() < deadline_ ? questions_.due(now()) : std::nullopt;
}

// Turns are taken from the first eviction on: a pod that were parked for want of this would keep no tier closed. And
// who requires to see the volumes detached has to know before anything is touched that he can. What is not answered in
// time is asked for again beside the loop.
asio::awaitable<bool> Drain::Impl::resolve_at_first() {
  if (options_.volume_turns == VolumeWait::off && !requires_volumes()) co_return true;
  const TimePoint limit = within(VolumeTurns::patience);
  while (!volumes_error_ && now() < limit) {
    const auto volume = due_question();
    if (questions_.next_due() >= limit || questions_.all_failed(is_final)) break;
    if (!volume) {
      co_await clock_.sleep_until(questions_.next_due());
      continue;
    }
    const auto refused = co_await ask_whose(*volume, limit);
    if (refused && requires_volumes())
      co_return give_up(*refused, "PersistentVolume " + *volume + " could not be read");
  }
  co_return true;
}

// Those that are due. Beside the loop, which comes back when there are more.
asio::awaitable<void> Drain::Impl::resolve_volumes() {
  while (const auto volume = due_question()) {
    static_cast<void>(co_await ask_whose(*volume, TimePoint::max()));
    if (volumes_error_) break;
  }
  resolves_volumes_ = false;
  changed_->notify();
}

// Beside the loop.
asio::awaitable<void> Drain::Impl::ask_node_for_volumes() {
  Backoff backoff(volumes_patience);
  while (volumes_.asks_for_node(now())) {
    const TimePoint asked = now();
    const auto node = co_await client_.get_node_volumes(node_name_, within(request_timeout));
    if (!node) {
      if (!cut_off(node.error())) volumes_trouble_ = node.error();
      changed_->notify();
      co_await clock_.sleep_until(now() + backoff.next(rng_, node.error().retry_after));
      continue;
    }
    volumes_trouble_.reset();
    std::set<std::string> attachments;
    for (const std::string& volume : node->held) attachments.insert(k8s::attachment_name(volume, node_name_));
    volumes_.node_holds(attachments, asked);
  }
  asks_node_for_volumes_ = false;
  changed_->notify();
}

}  // namespace haulout::drain
