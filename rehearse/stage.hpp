// The simulated cluster of a rehearsal, with its clock and a client. Rehearsals of drains and of fleets use it. Its
// clock begins some time before the time of the snapshot, so that the controllers of the cluster have finished reacting
// to the loaded objects at that time. Owns the clock, the cluster and the client. No I/O; not cancellable.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "k8s/client.hpp"
#include "rehearse/rehearsal.hpp"
#include "sim/cluster.hpp"
#include "sim/virtual_clock.hpp"

namespace haulout::rehearse {

struct SnapshotObjects {
  // A document, and how many objects it has.
  struct Part {
    std::string file;
    std::size_t objects;
  };
  std::vector<sim::Json> all;      // without the fields that nothing reads (drop_unread())
  std::vector<Part> parts;         // the documents of `all`, in its order
  std::optional<WallTime> newest;  // the newest time in them, up to Snapshot::read_at
  std::set<std::string> others{};  // kinds of objects that are left out, each as "Kind.group"
  std::vector<Skipped> skipped{};  // with those of the snapshot
};

// Returns the objects of all documents, and frees the text of each document that it has read. Objects in files that
// have only metadata.generateName get a name that no other object has. Fails with Errc::decode, naming the file and the
// cause, if a document is invalid.
Result<SnapshotObjects> objects_of(Snapshot& snapshot, const OnProgress& on_progress = {});
// Fails with Errc::decode if the objects contain no nodes or no pods. Every real cluster has both, so such a file was
// made by a wrong command, and without pods every drain would succeed.
Result<> check_whole(const std::vector<sim::Json>& objects);
// Fails with Errc::decode if pods belong to ReplicaSets or StatefulSets and the objects contain none of them: a
// rehearsal then replaces no pod, and no setting seems to harm anything.
Result<> check_controllers(const std::vector<sim::Json>& objects);
// Returns the phrase about the time of a snapshot that was read from files.
std::string assumed_time(WallTime dated);

class Stage {
 public:
  // Limit for a single request that the rehearsal itself sends.
  static constexpr Duration request_limit = std::chrono::seconds(30);

  Stage(const Assumptions& assumptions, std::uint64_t seed, std::uint32_t page_size);

  // Loads the snapshot into the cluster, and frees the text of each document that it has read. To be called once. Fails
  // with Errc::decode if the snapshot is invalid.
  Result<> load(Snapshot& snapshot, const OnProgress& on_progress);
  // The same for objects that were read already (objects_of()). `now` is the time of their snapshot.
  void load(std::vector<sim::Json> objects, WallTime now);
  // Returns a phrase for each assumption that the rehearsal has to make because no snapshot contains the fact. To be
  // called after load() and before play(), because it reads the cluster as it was loaded.
  std::vector<std::string> assumed() const;
  // Runs the coroutine `act` to its end, in virtual time, while the simulated cluster runs. Blocks. Fails with
  // Errc::invalid if `act` does not end, because it waits for an event that never happens or loops without end.
  Result<> play(std::function<boost::asio::awaitable<void>()> act);
  // Waits until controllers, scheduler and kubelets have nothing left to do. To be called at the beginning and at the
  // end of the coroutine that is passed to play().
  boost::asio::awaitable<void> come_to_rest();

 private:
  Assumptions assumptions_;
  std::optional<WallTime> dated_;  // newest time in the objects of a snapshot from files; unset for other snapshots
  std::vector<std::string> of_volumes_;  // assumptions about volumes, from prepare_volumes()
  boost::asio::io_context context_{1};
  SeededRng world_rng_;

 public:
  boost::asio::any_io_executor executor() { return context_.get_executor(); }
  sim::VirtualClock clock{context_};
  SeededRng rng;
  sim::Cluster cluster;
  k8s::Client client;
};

}  // namespace haulout::rehearse
