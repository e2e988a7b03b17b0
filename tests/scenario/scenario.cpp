#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace asio = boost::asio;

Json a_node(const std::string& name) {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", name}, {"uid", name + "-uid"}}},
          {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
}

Json a_pod(const std::string& name, const PodSpec& given) {
  Json metadata = {
      {"name", name}, {"namespace", given.ns}, {"labels", given.labels}, {"annotations", given.annotations}};
  if (!given.owner_kind.empty())
    metadata["ownerReferences"] = {{{"apiVersion", given.owner_api},
                                    {"kind", given.owner_kind},
                                    {"name", given.owner_name},
                                    {"uid", given.owner_uid},
                                    {"controller", true}}};
  metadata.merge_patch(given.metadata);
  Json spec = {{"nodeName", given.node},
               {"terminationGracePeriodSeconds", given.grace},
               {"containers", {{{"name", "main"}, {"image", "registry.example/main:1"}}}}};
  spec.merge_patch(given.spec);
  Json status = {{"phase", given.phase},
                 {"conditions", {{{"type", "Ready"}, {"status", given.ready ? "True" : "False"}}}}};
  return {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata}, {"spec", spec}, {"status", status}};
}

Json a_workload(const std::string& kind, const std::string& name, int replicas, Json template_spec,
                Json template_annotations, const std::string& ns) {
  template_spec["containers"] = {{{"name", "main"}, {"image", "registry.example/main:1"}}};
  Json spec = {
      {"selector", {{"matchLabels", {{"app", name}}}}},
      {"template",
       {{"metadata", {{"labels", {{"app", name}}}, {"annotations", template_annotations}}}, {"spec", template_spec}}}};
  if (kind != "DaemonSet") spec["replicas"] = replicas;
  return {{"apiVersion", "apps/v1"},
          {"kind", kind},
          {"metadata", {{"name", name}, {"namespace", ns}, {"uid", name + "-uid"}}},
          {"spec", spec}};
}

Json a_budget(const std::string& name, Json spec, const std::string& ns) {
  if (!spec.contains("selector")) spec["selector"] = Json::object();
  return {{"apiVersion", "policy/v1"},
          {"kind", "PodDisruptionBudget"},
          {"metadata", {{"name", name}, {"namespace", ns}}},
          {"spec", spec}};
}

Json mounting(const std::vector<std::string>& claims) {
  Json volumes = Json::array();
  for (const std::string& claim : claims)
    volumes.push_back({{"name", claim}, {"persistentVolumeClaim", {{"claimName", claim}}}});
  return {{"volumes", volumes}};
}

Json a_volume(const std::string& name, const Json& annotations, const std::string& access_mode) {
  const Json volume = {{"apiVersion", "v1"},
                       {"kind", "PersistentVolume"},
                       {"metadata", {{"name", "pv-" + name}, {"annotations", annotations}}},
                       {"spec",
                        {{"accessModes", {access_mode}},
                         {"csi", {{"driver", "csi.example.com"}, {"volumeHandle", "handle-" + name}}},
                         {"claimRef", {{"kind", "PersistentVolumeClaim"}, {"namespace", "shop"}, {"name", name}}}}}};
  const Json claim = {{"apiVersion", "v1"},
                      {"kind", "PersistentVolumeClaim"},
                      {"metadata", {{"name", name}, {"namespace", "shop"}}},
                      {"spec", {{"accessModes", {access_mode}}, {"volumeName", "pv-" + name}}}};
  return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", Json::array({volume, claim})}};
}

Json a_volume_attachment(const std::string& volume, const std::string& node) {
  return {
      {"apiVersion", "storage.k8s.io/v1"},
      {"kind", "VolumeAttachment"},
      {"metadata", {{"name", "csi-" + volume + "-" + node}, {"finalizers", {"external-attacher/csi.example.com"}}}},
      {"spec", {{"attacher", "csi.example.com"}, {"nodeName", node}, {"source", {{"persistentVolumeName", volume}}}}},
      {"status", {{"attached", true}}}};
}

void Recorder::on_event(const drain::Event& event) {
  Entry entry{event.type, event.at, {}, {}, {}, {}, event.message};
  if (event.pod) {
    entry.pod = event.pod->key();
    entry.reason = event.pod->reason;
    if (entry.message.empty()) entry.message = event.pod->message;
  }
  if (event.volume) {
    entry.volume = event.volume->volume;
    entry.message = event.volume->message;
  }
  if (event.diagnosis) {
    entry.diagnosis = event.diagnosis->code;
    entry.advice = !event.diagnosis->scope.holds;
    entry.message = event.diagnosis->message;
  }
  entries.push_back(std::move(entry));
}

std::size_t Recorder::count(drain::EventType type, const std::string& pod) const {
  return static_cast<std::size_t>(std::count_if(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.type == type && (pod.empty() || entry.pod == pod);
  }));
}

std::optional<WallTime> Recorder::time_of(drain::EventType type, const std::string& what) const {
  for (const Entry& entry : entries)
    if (entry.type == type && (entry.pod == what || entry.diagnosis == what || entry.volume == what)) return entry.at;
  return std::nullopt;
}

bool Recorder::raised(const std::string& code) const {
  return time_of(drain::EventType::diagnosis_raised, code).has_value();
}
bool Recorder::withdrawn(const std::string& code) const {
  return time_of(drain::EventType::diagnosis_withdrawn, code).has_value();
}
bool Recorder::advised(const std::string& code) const {
  return raised(code) && std::all_of(entries.begin(), entries.end(),
                                     [&](const Entry& entry) { return entry.diagnosis != code || entry.advice; });
}
std::string Recorder::message_of(const std::string& code) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.diagnosis == code; });
  return found == entries.end() ? std::string() : found->message;
}

Scenario::Scenario() {
  options.run_id = "scenario";
  for (const char* name : {"n1", "n2", "n3"}) add(a_node(name));
}

void Scenario::add(Json object) {
  const auto loaded = cluster.load(object.dump());
  ASSERT_TRUE(loaded) << loaded.error().message();
}

void Scenario::add_pods(int count, const PodSpec& spec, const std::string& prefix) {
  for (int i = 0; i < count; ++i) add(a_pod(prefix + "-" + std::to_string(i), spec));
}

void Scenario::no_latency() {
  sim::Timing& timing = cluster.timing();
  timing.api_latency = timing.api_latency_jitter = timing.watch_latency = timing.watch_latency_jitter =
      Duration::zero();
}

void Scenario::stir_bystander(int times) {
  for (int i = 0; i < times; ++i)
    cluster.patch("pods", "shop", "bystander", {{"metadata", {{"annotations", {{"times", std::to_string(i)}}}}}});
}

void Scenario::restore_unheard(Duration backed_up, Duration restored) {
  const auto backup = std::make_shared<std::uint64_t>(0);
  after(backed_up, [this, backup] {
    *backup = cluster.revision();
    stir_bystander(100);
  });
  after(restored, [this, backup] {
    cluster.restore_etcd(*backup);
    cluster.drop_connections();
  });
}

void Scenario::after(Duration delay, std::function<void()> action) {
  later_.emplace_back(delay, std::move(action));
}

asio::awaitable<drain::Report> Scenario::run_drain() {
  std::optional<drain::Report> report;
  co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
    group.spawn(cluster.run());
    co_await clock.sleep_until(clock.now() + 5s);  // controllers and kubelets settle the cluster
    for (auto& [delay, action] : later_) cluster.after(delay, std::move(action));
    began_ = clock.now();
    Clock& ours = own_clock ? *own_clock : clock;
    k8s::Client client(way ? *way : cluster.api(), ours, {k8s::FieldValidation::strict, options.page_size});
    drain::Drain drain(client, rng, told, options, "n1");
    drain.expect_evicted(evicted_before);
    report = co_await drain.run();
    ended_ = clock.now();
  });
  co_return std::move(*report);
}

drain::Report Scenario::drain() {
  return run(run_drain());
}

std::vector<sim::AuditEntry> Scenario::requests(const std::string& verb, const std::string& resource,
                                                const std::string& subresource) const {
  std::vector<sim::AuditEntry> found;
  for (const auto& entry : cluster.audit())
    if (entry.verb == verb && entry.resource == resource && entry.subresource == subresource) found.push_back(entry);
  return found;
}

std::size_t Scenario::accepted_evictions() const {
  const auto all = evictions();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const sim::AuditEntry& entry) { return entry.status == 201; }));
}

const drain::PodReport& Scenario::pod(const drain::Report& report, const std::string& name) const {
  static const drain::PodReport none;
  for (const auto& candidate : report.pods)
    if (candidate.name == name) return candidate;
  ADD_FAILURE() << "the report knows no pod " << name;
  return none;
}

std::size_t Scenario::asked_for_volumes() const {
  return requests("list", "volumeattachments").size() + requests("watch", "volumeattachments").size() +
         requests("get", "persistentvolumes").size();
}

WallTime Scenario::sent_at(const std::string& pod) const {
  const auto sent = told.time_of(drain::EventType::eviction_sent, "shop/" + pod);
  EXPECT_TRUE(sent) << pod;
  return sent.value_or(WallTime::max());
}

const drain::VolumeReport& Scenario::volume(const drain::Report& report, const std::string& name) const {
  static const drain::VolumeReport none;
  for (const auto& candidate : report.volumes)
    if (candidate.volume == name) return candidate;
  ADD_FAILURE() << "the report knows no volume " << name;
  return none;
}

std::vector<std::string> Scenario::pods_on(const std::string& node) const {
  std::vector<std::string> names;
  for (const Json& object : cluster.all("pods"))
    if (sim::text(object, "/spec/nodeName") == node) names.push_back(sim::name_of(object));
  return names;
}

bool Scenario::unschedulable(const std::string& node) const {
  return sim::flag(cluster.get("nodes", "", node), "/spec/unschedulable");
}

}  // namespace haulout::scenario
