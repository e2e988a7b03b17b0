// A drain on the simulated cluster in virtual time. Contains builders for the cluster's objects, a recorder of the
// drain's events, and queries about the result of the scenario.
#pragma once

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "drain/drain.hpp"
#include "retry/deadline.hpp"
#include "retry/task_group.hpp"
#include "tests/support/test_cluster.hpp"
#include "tests/support/virtual_time.hpp"
#include "tests/worlds/faults.hpp"

namespace haulout::drain {
// Test failures print values with these functions.
inline void PrintTo(Outcome outcome, std::ostream* out) {
  *out << to_string(outcome);
}
inline void PrintTo(PodOutcome outcome, std::ostream* out) {
  *out << to_string(outcome);
}
inline void PrintTo(const Report& report, std::ostream* out) {
  *out << "report of " << report.node;
}
}  // namespace haulout::drain

namespace haulout::scenario {

using Json = sim::Json;

struct PodSpec {
  std::string ns = "shop";
  std::string node = "n1";
  std::int64_t grace = 10;
  std::string owner_kind = "ReplicaSet";  // empty: no controller
  std::string owner_name = "dangling";    // no such object exists, so no controller creates a replacement
  std::string owner_uid = "dangling-uid";
  std::string owner_api = "apps/v1";
  std::string phase = "Running";
  bool ready = true;
  Json labels = Json::object();
  Json annotations = Json::object();
  Json spec = Json::object();      // merged over the default spec
  Json metadata = Json::object();  // merged over the default metadata
};

Json a_node(const std::string& name);
Json a_pod(const std::string& name, const PodSpec& spec = {});
Json a_workload(const std::string& kind, const std::string& name, int replicas, Json template_spec,
                Json template_annotations = Json::object(), const std::string& ns = "shop");
Json a_budget(const std::string& name, Json spec, const std::string& ns = "shop");

// Returns the spec of a pod that mounts these claims.
Json mounting(const std::vector<std::string>& claims);
// Returns a claim with this name in namespace shop, bound to PersistentVolume pv-NAME with these annotations.
Json a_volume(const std::string& name, const Json& annotations = Json::object(),
              const std::string& access_mode = "ReadWriteOnce");
Json a_volume_attachment(const std::string& volume, const std::string& node = "n1");

// Records all events of a drain with their virtual time.
class Recorder final : public drain::DrainObserver {
 public:
  struct Entry {
    drain::EventType type;
    WallTime at;
    std::string pod;  // namespace/name
    std::string reason;
    std::string diagnosis;  // code of the diagnosis
    std::string volume;
    std::string message;
    bool advice = false;  // a diagnosis that does not hold up the drain
  };
  void on_event(const drain::Event& event) override;
  std::vector<Entry> entries;

  std::size_t count(drain::EventType type, const std::string& pod = {}) const;
  bool raised(const std::string& code) const;
  bool withdrawn(const std::string& code) const;
  bool advised(const std::string& code) const;            // true if every diagnosis with this code is advice
  std::string message_of(const std::string& code) const;  // message of the first diagnosis with this code
  std::optional<WallTime> time_of(drain::EventType type, const std::string& what) const;
};

class Scenario : public haulout::testing::VirtualTimeTest {
 protected:
  Scenario();

  void add(Json object);
  // Adds `count` ordinary pods web-0, web-1, … to n1. No controller replaces them.
  void add_pods(int count, const PodSpec& spec = {}, const std::string& prefix = "web");

  // The first function adds a finished pod to n1 that is irrelevant to the tests. The second patches it that many times
  // to produce watch events.
  void add_bystander() { add(a_pod("bystander", {.phase = "Succeeded"})); }
  void stir_bystander(int times);
  // Takes a backup of etcd at `backed_up`, then patches the bystander to raise the revision. At `restored` etcd is
  // restored and all connections break, so clients open their watches again with a revision from the future. These
  // watches deliver nothing until the restored cluster has reached that revision.
  void restore_unheard(Duration backed_up, Duration restored);

  // Starts the cluster, lets it settle, and then runs a drain of n1 to its end.
  drain::Report drain();
  // Sets all latencies of requests, answers and watch events to zero, so that only the drain's own waits take time.
  void no_latency();
  // Runs `action` this long after the drain has started.
  void after(Duration delay, std::function<void()> action);

  std::vector<sim::AuditEntry> requests(const std::string& verb, const std::string& resource,
                                        const std::string& subresource = "") const;
  std::vector<sim::AuditEntry> evictions() const { return requests("create", "pods", "eviction"); }
  std::size_t accepted_evictions() const;
  // Number of lists and watches of VolumeAttachments plus reads of PersistentVolumes.
  std::size_t asked_for_volumes() const;
  // Returns when the first eviction of this pod in namespace shop was sent. The test fails if none was sent.
  WallTime sent_at(const std::string& pod) const;
  const drain::VolumeReport& volume(const drain::Report& report, const std::string& name) const;
  const drain::PodReport& pod(const drain::Report& report, const std::string& name) const;
  std::vector<std::string> pods_on(const std::string& node) const;
  bool unschedulable(const std::string& node = "n1") const;
  Duration took() const { return ended_ - began_; }

  SeededRng world_rng{1};
  SeededRng rng{2};
  sim::TestCluster cluster{context.get_executor(), clock, world_rng};
  // The transport between the drain and the API server; null: cluster.api(). Tests set it to inject faults. Borrowed.
  http::Transport* way = nullptr;
  // Clock of the machine that runs the drain, if it differs from the cluster's; null: `clock`. Borrowed.
  Clock* own_clock = nullptr;
  Recorder told;
  drain::Options options;
  std::set<std::string> evicted_before;  // passed to Drain::expect_evicted()

 private:
  boost::asio::awaitable<drain::Report> run_drain();
  TimePoint began_{}, ended_{};
  std::vector<std::pair<Duration, std::function<void()>>> later_;
};

MATCHER_P(Ended, outcome, "") {
  *result_listener << "outcome " << drain::to_string(arg.outcome) << ": " << arg.message;
  for (const auto& pod : arg.pods)
    *result_listener << "\n  " << pod.key() << ' ' << drain::to_string(pod.outcome) << ' ' << pod.reason << ' '
                     << pod.message;
  return arg.outcome == outcome;
}

}  // namespace haulout::scenario
