#include "drain/volume_claims.hpp"

#include <tuple>

#include "drain/volume_turns.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// Returns true if no retry can resolve the error. A 403 is not final, because the first one may be wrong; ask() decides
// about it.
bool is_final(const Error& error) {
  return !k8s::may_heal(error) && !k8s::is_forbidden(error);
}

}  // namespace

void VolumeQuestions::want(const std::vector<std::string>& volumes) {
  std::map<std::string, Open> wanted;
  for (const std::string& volume : volumes) {
    const auto known = open_.find(volume);
    Open open = known != open_.end() ? std::move(known->second) : Open{.backoff = Backoff(volumes_patience)};
    open.place = wanted.size();
    wanted.try_emplace(volume, std::move(open));
  }
  open_ = std::move(wanted);
}

std::optional<std::string> VolumeQuestions::due(TimePoint now) const {
  const auto first = std::min_element(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.due, a.second.place) < std::tie(b.second.due, b.second.place);
  });
  if (first == open_.end() || first->second.due > now || not_before_ > now) return std::nullopt;
  return first->first;
}

TimePoint VolumeQuestions::next_due() const {
  TimePoint next = TimePoint::max();
  for (const auto& [volume, open] : open_) next = std::min(next, std::max(open.due, not_before_));
  return next;
}

void VolumeQuestions::answered(const std::string& volume) {
  open_.erase(volume);
  not_before_ = TimePoint::min();
  pause_.reset();
}

void VolumeQuestions::failed(const std::string& volume, Error error, bool refused, TimePoint now, Rng& rng) {
  not_before_ = now + pause_.next(rng, error.retry_after);
  const auto found = open_.find(volume);
  if (found == open_.end()) return;
  Open& open = found->second;
  open.refusals = refused ? open.refusals + 1 : 0;
  open.due = now + open.backoff.next(rng, error.retry_after);
  open.error = std::move(error);
}

unsigned VolumeQuestions::refusals(const std::string& volume) const {
  const auto found = open_.find(volume);
  return found == open_.end() ? 0 : found->second.refusals;
}

const Error* VolumeQuestions::trouble() const {
  const Open* worst = nullptr;
  for (const auto& [volume, open] : open_)
    if (open.error && (!worst || open.backoff.attempts() > worst->backoff.attempts())) worst = &open;
  return worst ? &*worst->error : nullptr;
}

// Returns the volume's claim as "namespace/name". Empty: no claim has the volume, or the PersistentVolume does not
// exist.
Task<std::string> VolumeClaims::claim_of(std::string name, TimePoint limit) {
  const auto volume =
      co_await session_.client().get<k8s::PersistentVolume>(name, std::min(limit, session_.within(request_timeout)));
  if (!volume && !k8s::is_gone(volume.error())) co_return volume.error();
  any_read_ = true;
  // A claimRef that a person wrote may lack the name or the namespace; then the volume has no claim.
  if (!volume || volume->claim_name.empty() || volume->claim_ns.empty()) co_return std::string();
  std::string key = volume->claim_ns + "/" + volume->claim_name;
  if (!may_be_of_an_earlier_claim(*volume)) co_return key;
  const auto claim = co_await session_.client().get<k8s::PersistentVolumeClaim>(
      volume->claim_ns, volume->claim_name, std::min(limit, session_.within(request_timeout)));
  if (claim) co_return is_volume_of(*volume, *claim) ? key : std::string();
  // The claim was deleted with its pod or its namespace, or the drain may not read it. Then the claimRef decides, and
  // the drain waits for the volume.
  const bool refused = k8s::is_forbidden(claim.error()) && questions_.refusals(name) > 0;
  if (refused || k8s::is_gone(claim.error())) co_return key;
  co_return claim.error();
}

// Looks up the claim of one volume. Returns the error once it is certain that the drain may not read PersistentVolumes.
// A single refusal does not prove that, since it may be the first answer after a reconnect. If the drain has read a
// PersistentVolume before, no refusal proves it.
asio::awaitable<std::optional<Error>> VolumeClaims::ask(std::string volume, TimePoint limit) {
  auto claim = co_await claim_of(volume, limit);
  if (claim) {
    questions_.answered(volume);
    volumes_.resolved(volume, *std::move(claim));
    co_return std::nullopt;
  }
  if (session_.cut_off(claim.error())) co_return std::nullopt;
  questions_.failed(volume, claim.error(), k8s::is_forbidden(claim.error()), session_.now(), session_.rng());
  if (any_read_ || questions_.refusals(volume) < 2) co_return std::nullopt;
  if (!required_) refused_ = claim.error();
  co_return claim.error();
}

std::optional<std::string> VolumeClaims::due() {
  questions_.want(volumes_.unresolved());
  return session_.now() < session_.deadline() ? questions_.due(session_.now()) : std::nullopt;
}

// There are two reasons to look up the claims before the first eviction. With --serialize-volumes, a pod whose volumes
// are unknown would be parked; since a parked pod does not delay later tiers, these would start too early. And if
// volumes are required, the drain must find out whether it can read them before it changes anything. The main loop
// repeats the look-up of claims that are still unknown.
asio::awaitable<bool> VolumeClaims::resolve_at_first() {
  if (session_.options().volume_turns == VolumeWait::off && !required_) co_return true;
  const TimePoint limit = session_.within(VolumeTurns::patience);
  while (!refused_ && session_.now() < limit) {
    const auto volume = due();
    if (questions_.next_due() >= limit || questions_.all_failed(is_final)) break;
    if (!volume) {
      co_await session_.clock().sleep_until(questions_.next_due());
      continue;
    }
    const auto refused = co_await ask(*volume, limit);
    if (refused && required_)
      co_return session_.ending().give_up(*refused, "PersistentVolume " + *volume + " could not be read");
  }
  co_return true;
}

// Looks up the claims that are due. Runs concurrently with the main loop, which starts it again when more are due.
asio::awaitable<void> VolumeClaims::resolve_all() {
  while (const auto volume = due()) {
    static_cast<void>(co_await ask(*volume, TimePoint::max()));
    if (refused_) break;
  }
  session_.changed().notify();
}

void VolumeClaims::look(TaskGroup& group) {
  if (!resolver_.runs() && due()) resolver_.start(group, resolve_all());
}

TimePoint VolumeClaims::next_wake(TimePoint at) const {
  const TimePoint due = questions_.next_due();
  return due > at ? due : TimePoint::max();
}

}  // namespace haulout::drain
