#include "agent/lifecycle/node_view.hpp"

#include <algorithm>

#include "agent/node/record.hpp"
#include "drain/reasons.hpp"
#include "k8s/objects.hpp"
#include "k8s/reflector.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Within this time even a kubelet that starts after the agent has reported its boot.
constexpr Duration kubelet_patience = std::chrono::minutes(2);

}  // namespace

NodeView::NodeView(asio::any_io_executor executor, k8s::Client& client, Rng& rng, std::string name, Callbacks callbacks)
    : client_(client),
      rng_(rng),
      name_(std::move(name)),
      callbacks_(std::move(callbacks)),
      changed_(std::move(executor)) {}

void NodeView::see(const k8s::Node& node, std::optional<TimePoint> list_asked) {
  const bool same = node.uid == node_.uid;
  // A list is at least as new as the time of its request, even if the resourceVersion of the Node is lower.
  if (same && list_asked && *list_asked > learned_)
    learn(node, news_);
  else if (same)
    learn_unless_older(node);
  callbacks_.seen(same);
}

void NodeView::learn_unless_older(k8s::Node node) {
  if (node.uid != node_.uid || !k8s::is_older(node.resource_version, node_.resource_version))
    learn(std::move(node), news_);
}

// The newest state may have a lower resourceVersion than the known one, for example after an etcd backup was restored.
void NodeView::learn(k8s::Node node, std::uint64_t news_before) {
  if (news_ != news_before) return learn_unless_older(std::move(node));
  const bool took_pods = node.uid != node_.uid || !node_.unschedulable;
  node_ = std::move(node);
  if (!node_.unschedulable)
    callbacks_.schedulable();
  else if (took_pods)
    takes_no_pods_since_ = client_.server_now();
  if (has_foreign_boot_id(node_, boot_id_))
    foreign_boot_since_ = foreign_boot_since_.value_or(client_.clock().now());
  else
    foreign_boot_since_.reset();
  ++news_;
  learned_ = client_.clock().now();
  changed_.notify();
}

asio::awaitable<void> NodeView::follow() {
  k8s::ReflectorOptions options;
  options.field_selector = "metadata.name=" + name_;
  for (;;) {
    k8s::Reflector<k8s::Node> watch(
        client_, rng_, options,
        [this, &watch](const std::string& uid, const k8s::Node* node) {
          if (node) see(*node, watch.list_asked());
          if (!node && uid == node_.uid) callbacks_.deleted();
        },
        [this] { callbacks_.watch_reported(); });
    static_cast<void>(co_await watch.run());
    // The server refused the first list. Retry, because the permission may be granted later; until then the agent reads
    // the Node by requests.
    co_await client_.clock().sleep_until(client_.clock().now() +
                                         rng_.between(std::chrono::seconds(20), std::chrono::seconds(40)));
  }
}

asio::awaitable<void> NodeView::changed() {
  co_await changed_.wait_until(client_.clock(), TimePoint::max());
}

bool NodeView::kubelet_reports_this_boot() const {
  return node_.ready && (node_.boot_id.empty() || node_.boot_id == boot_id_);
}

std::optional<Status> NodeView::foreign_boot(TimePoint& until) const {
  if (!foreign_boot_since_) return std::nullopt;
  const TimePoint patient_until = *foreign_boot_since_ + kubelet_patience;
  if (client_.clock().now() >= patient_until)
    return Status{.reason = reason::boot_id_foreign, .message = foreign_boot_id(node_, boot_id_)};
  until = std::min(until, patient_until);
  return Status{.reason = reason::node_not_ready, .message = "the kubelet has not reported this boot yet"};
}

}  // namespace haulout::agent
