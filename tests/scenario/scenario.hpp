// A drain on the simulated cluster in virtual time: builders for the cluster's objects, a recorder of what the drain
// tells, and the questions that scenarios ask afterwards.
#pragma once

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "drain/drain.hpp"
#include "retry/deadline.hpp"
#include "retry/task_group.hpp"
#include "sim/cluster.hpp"
#include "tests/support/virtual_time.hpp"
#include "tests/worlds/faults.hpp"

namespace haulout::drain {
// How test failures print them.
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

using Json = nlohmann::json;

struct PodSpec {
  std::string ns = "shop";
  std::string node = "n1";
  std::int64_t grace = 10;
  std::string owner_kind = "ReplicaSet";  // empty: no controller
  std::string owner_name = "dangling";    // an owner that is no object brings nothing back
  std::string owner_uid = "dangling-uid";
  std::string owner_api = "apps/v1";
  std::string phase = "Running";
  bool ready = true;
  Json labels = Json::object();
  Json annotations = Json::object();
  Json spec = Json::object();      // merged over
  Json metadata = Json::object();  // merged over
};

Json a_node(const std::string& name);
Json a_pod(const std::string& name, const PodSpec& spec = {});
Json a_workload(const std::string& kind, const std::string& name, int replicas, Json template_spec,
                Json template_annotations = Json::object(), const std::string& ns = "shop");
Json a_budget(const std::string& name, Json spec, const std::string& ns = "shop");

// The spec of a pod that mounts these claims.
Json mounting(const std::vector<std::string>& claims);
// A claim of that name in shop, bound to a PersistentVolume pv-NAME with these annotations.
Json a_volume(const std::string& name, const Json& annotations = Json::object(),
              const std::string& access_mode = "ReadWriteOnce");
Json a_volume_attachment(const std::string& volume, const std::string& node = "n1");

// Everything that a drain told, with the virtual time of it.
class Recorder final : public drain::DrainObserver {
 public:
  struct Entry {
    drain::EventType type;
    WallTime at;
    std::string pod;  // namespace/name
    std::string reason;
    std::string diagnosis;  // code
    std::string volume;
    std::string message;
    bool advice = false;  // a finding that holds nothing up
  };
  void on_event(const drain::Event& event) override;
  std::vector<Entry> entries;

  std::size_t count(drain::EventType type, const std::string& pod = {}) const;
  bool raised(const std::string& code) const;
  bool withdrawn(const std::string& code) const;
  bool advised(const std::string& code) const;            // of all findings with it
  std::string message_of(const std::string& code) const;  // of the first finding with it
  std::optional<WallTime> time_of(drain::EventType type, const std::string& what) const;
};

class Scenario : public haulout::testing::VirtualTimeTest {
 protected:
  Scenario();

  void add(Json object);
  // `count` ordinary pods web-0, web-1, … on n1 that nothing brings back.
  void add_pods(int count, const PodSpec& spec = {}, const std::string& prefix = "web");

  // A pod on n1 that concerns nobody, and so many events about it.
  void add_bystander() { add(a_pod("bystander", {.phase = "Succeeded"})); }
  void stir_bystander(int times);
  // Etcd is restored from a backup, the bystander has taken the revisions far ahead of it, and the watches are opened
  // again at once: until as many have passed they tell of nothing.
  void restore_unheard(Duration backed_up, Duration restored);

  // Runs the cluster and a drain of n1 to the drain's end. Before that the cluster comes to rest.
  drain::Report drain();
  // Requests, answers and events take no time: what is left is what the drain lets pass.
  void no_latency();
  // What happens meanwhile, counted from the start of the drain.
  void after(Duration delay, std::function<void()> action);

  std::vector<sim::AuditEntry> requests(const std::string& verb, const std::string& resource,
                                        const std::string& subresource = "") const;
  std::vector<sim::AuditEntry> evictions() const { return requests("create", "pods", "eviction"); }
  std::size_t accepted_evictions() const;
  // Lists and watches of VolumeAttachments, and PersistentVolumes that were read.
  std::size_t asked_for_volumes() const;
  // When the eviction of this pod of namespace shop was first sent; that it was is expected.
  WallTime sent_at(const std::string& pod) const;
  const drain::VolumeReport& volume(const drain::Report& report, const std::string& name) const;
  const drain::PodReport& pod(const drain::Report& report, const std::string& name) const;
  std::vector<std::string> pods_on(const std::string& node) const;
  bool unschedulable(const std::string& node = "n1") const;
  Duration took() const { return ended_ - began_; }

  SeededRng world_rng{1};
  SeededRng rng{2};
  sim::Cluster cluster{context.get_executor(), clock, world_rng};
  // Stands between the drain and the API server; tests set it to make the way there worse.
  http::Transport* way = nullptr;
  // Of the machine that the drain runs on, where it is not right.
  Clock* own_clock = nullptr;
  Recorder told;
  drain::Options options;

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
