// Drain: finds out which claim each volume attached to its node belongs to. Each PersistentVolume names its claim. If
// no pod uses that claim, the status of the Node says whether its kubelet or the attach-detach controller still has the
// volume.
#include "drain/drain_impl.hpp"
#include "drain/insist.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// True if neither waiting nor another request can help.
bool is_final(const Error& error) {
  return !may_heal(error) && !k8s::is_forbidden(error);
}

}  // namespace

// Returns the volume's claim as "namespace/name". Empty: no claim has the volume, or the PersistentVolume does not
// exist.
Task<std::string> Drain::Impl::claim_of(std::string name, TimePoint limit) {
  const auto volume = co_await client_.get<k8s::PersistentVolume>(name, std::min(limit, within(request_timeout)));
  if (!volume && !k8s::is_gone(volume.error())) co_return volume.error();
  volumes_resolved_ = true;
  // A claimRef that a person has written may lack the name or the namespace.
  if (!volume || volume->claim_name.empty() || volume->claim_ns.empty()) co_return std::string();
  std::string key = volume->claim_ns + "/" + volume->claim_name;
  if (!may_be_of_an_earlier_claim(*volume)) co_return key;
  const auto claim = co_await client_.get<k8s::PersistentVolumeClaim>(volume->claim_ns, volume->claim_name,
                                                                      std::min(limit, within(request_timeout)));
  if (claim) co_return is_volume_of(*volume, *claim) ? key : std::string();
  // The claim was deleted with its pod or its namespace, or the drain may not read it. Then the claimRef decides, and
  // the drain waits for the volume.
  const bool refused = k8s::is_forbidden(claim.error()) && questions_.refusals(name) > 0;
  if (refused || k8s::is_gone(claim.error())) co_return key;
  co_return claim.error();
}

// Asks for the claim of one volume. Returns the error once it is certain that the drain may not read PersistentVolumes.
// A single refusal does not prove that, since it may be the first answer after a reconnect. If the drain has read a
// PersistentVolume before, no refusal proves it.
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

// Asks for all claims before the first eviction, for at most `VolumeTurns::patience`. There are two reasons. With
// --serialize-volumes, a pod whose volumes are unknown would be parked; since a parked pod does not hold up its tier,
// later tiers would start too early. And if volumes are required, the drain must find out before it changes anything
// whether it can read them. The loop asks again for claims that are still unknown. Returns false if the drain has
// ended.
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

// Asks for the claims that are due. Runs beside the loop, which starts it again when more are due.
asio::awaitable<void> Drain::Impl::resolve_volumes() {
  while (const auto volume = due_question()) {
    static_cast<void>(co_await ask_whose(*volume, TimePoint::max()));
    if (volumes_error_) break;
  }
  resolves_volumes_ = false;
  changed_->notify();
}

// Reads the volumes in the Node's status, and retries until an answer comes or is not needed any more. Runs beside the
// loop.
asio::awaitable<void> Drain::Impl::ask_node_for_volumes() {
  Backoff backoff(volumes_patience);
  while (volumes_.asks_for_node(now())) {
    const TimePoint asked = now();
    const auto node = co_await client_.get<k8s::NodeVolumes>(node_name_, within(request_timeout));
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
