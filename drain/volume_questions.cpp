#include "drain/volume_questions.hpp"

#include <tuple>

namespace haulout::drain {

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

}  // namespace haulout::drain
