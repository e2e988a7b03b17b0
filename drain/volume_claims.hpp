// Finds out to which claim each volume attached to the node belongs, by reading the PersistentVolumes, which name their
// claims. VolumeQuestions decides which PersistentVolume to read next; VolumeClaims sends the requests and passes the
// answers to the VolumeBook. A request that fails is repeated. If the drain may not read PersistentVolumes, refused()
// has the error, and no more are read. But if volumes are required, that ends the drain in resolve_at_first(), and
// later the requests are repeated.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drain/feed.hpp"
#include "drain/session.hpp"
#include "drain/volumes.hpp"
#include "retry/backoff.hpp"
#include "retry/rng.hpp"
#include "retry/task.hpp"

namespace haulout::drain {

// Backoff after failed requests about volumes.
inline constexpr BackoffOptions volumes_patience{std::chrono::seconds(1), 2.0, std::chrono::seconds(30),
                                                 BackoffOptions::Jitter::equal};

// Schedules the reads of the PersistentVolumes. Each volume has its own backoff, so that a volume whose request fails
// does not delay the others for long. Pure: the caller sends the requests, one at a time.
//
// After a failure, requests about all volumes pause: for the server's Retry-After, or for a short time that grows with
// each failure in a row.
class VolumeQuestions {
 public:
  // Sets the PersistentVolumes to read. Forgets the state of all others.
  void want(const std::vector<std::string>& volumes);
  // Returns the volume to read next: first those that were not tried yet, in the order of want(), then the one that has
  // been due longest. Nullopt if none is due.
  std::optional<std::string> due(TimePoint now) const;
  // Returns the time from which due() returns a volume; max() if there is none to read.
  TimePoint next_due() const;
  void answered(const std::string& volume);
  void failed(const std::string& volume, Error error, bool refused, TimePoint now, Rng& rng);
  // Returns how many times in a row the server refused permission for this volume.
  unsigned refusals(const std::string& volume) const;
  // Returns the last error of the volume that has failed most often; nullptr if none has failed.
  const Error* trouble() const;
  // Returns true if there are volumes to read, and the last request for each of them failed with an error that
  // satisfies `such`.
  template <class Predicate>
  bool all_failed(Predicate such) const {
    return !open_.empty() && std::all_of(open_.begin(), open_.end(), [&](const auto& entry) {
      return entry.second.error && such(*entry.second.error);
    });
  }

 private:
  struct Open {
    TimePoint due = TimePoint::min();
    std::size_t place = 0;
    unsigned refusals = 0;
    std::optional<Error> error{};
    Backoff backoff;
  };
  std::map<std::string, Open> open_;  // by PersistentVolume
  TimePoint not_before_ = TimePoint::min();
  // Pause after any failure. It is short, so that other volumes are read soon.
  Backoff pause_{
      BackoffOptions{std::chrono::milliseconds(100), 2.0, std::chrono::seconds(2), BackoffOptions::Jitter::equal}};
};

// Borrows session and volumes.
class VolumeClaims {
 public:
  // `required`: if the server forbids resolve_at_first() to read the claim of a volume, the drain ends.
  VolumeClaims(Session& session, VolumeBook& volumes, bool required)
      : session_(session), volumes_(volumes), required_(required) {}

  // Looks up all claims before the first eviction, for at most `VolumeTurns::patience`. Returns false if the drain has
  // ended. Cancellable.
  boost::asio::awaitable<bool> resolve_at_first();
  // Starts the look-ups that are due, concurrently with the main loop.
  void look(TaskGroup& group);

  // Returns the error with which the server refused to let the drain read PersistentVolumes. Unset until that is
  // certain. Always unset if the volumes are required.
  const std::optional<Error>& refused() const { return refused_; }
  // Returns the last error of the volume that has failed most often; nullptr if none has failed.
  const Error* trouble() const { return questions_.trouble(); }
  TimePoint next_wake(TimePoint at) const;

 private:
  Task<std::string> claim_of(std::string name, TimePoint limit);
  boost::asio::awaitable<std::optional<Error>> ask(std::string volume, TimePoint limit);
  std::optional<std::string> due();
  boost::asio::awaitable<void> resolve_all();

  Session& session_;
  VolumeBook& volumes_;
  bool required_;
  VolumeQuestions questions_;
  bool any_read_ = false;  // at least one PersistentVolume could be read
  std::optional<Error> refused_;
  SingleTask resolver_;
};

}  // namespace haulout::drain
