#include "agent/gates/blocking_pods.hpp"

#include <fmt/format.h>

#include "agent/gates/until_differs.hpp"
#include "agent/gates/waiting.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

constexpr std::uint32_t page = 500;

std::string on_node(const std::string& node) {
  return "spec.nodeName=" + node;
}

}  // namespace

Task<std::vector<k8s::Pod>> BlockingPods::list(std::string selector, TimePoint deadline) {
  k8s::ListOptions options;
  options.field_selector = on_node(node_);
  options.label_selector = std::move(selector);
  options.limit = page;
  CO_TRY(auto pods, co_await respite_.ask([&] { return client_.list<k8s::Pod>(std::move(options), deadline); }));
  co_return std::move(pods.items);
}

asio::awaitable<Gate> BlockingPods::judge(TimePoint deadline) {
  Gate gate{.name = "blocking-pods", .message = "no pod of this node matches --blocking-pod-selector"};
  if (selectors_.empty()) {
    gate.verdict = Gate::Verdict::off;
    gate.message = "no --blocking-pod-selector is set";
    co_return gate;
  }
  seen_.assign(selectors_.size(), {});
  std::string first;
  std::set<std::string> matching;
  for (std::size_t i = 0; i < selectors_.size(); ++i) {
    auto pods = co_await list(selectors_[i], deadline);
    if (!pods) {
      gate.verdict = Gate::Verdict::closed;
      gate.reason = reason::blocking_pods_unknown;
      gate.message = fmt::format("it is unknown whether a pod matches --blocking-pod-selector {}: {}", selectors_[i],
                                 pods.error().message());
      gate.look_again = soon(client_.clock(), rng_);
      co_return gate;
    }
    for (const k8s::Pod& pod : *pods) {
      if (pod.finished()) continue;
      seen_[i].insert(pod.uid);
      matching.insert(pod.uid);
      if (first.empty())
        first = fmt::format("pod {} matches --blocking-pod-selector {}: the node waits until the pod has ended",
                            pod.key(), selectors_[i]);
    }
  }
  if (matching.empty()) co_return gate;
  gate.verdict = Gate::Verdict::closed;
  gate.reason = reason::blocked_by_pod;
  gate.message = matching.size() == 1 ? first : fmt::format("{} (and {} more)", first, matching.size() - 1);
  co_return gate;
}

asio::awaitable<void> BlockingPods::changed() {
  std::vector<asio::awaitable<void>> waits;
  waits.reserve(selectors_.size());
  for (std::size_t i = 0; i < selectors_.size(); ++i) waits.push_back(changed(i));
  co_await first_of(client_.clock(), std::move(waits));
}

asio::awaitable<void> BlockingPods::changed(std::size_t selector) {
  k8s::ReflectorOptions options;
  options.field_selector = on_node(node_);
  options.label_selector = selectors_[selector];
  co_await until_differs<k8s::Pod>(client_, rng_, respite_, options,
                                   [this, selector](const k8s::Reflector<k8s::Pod>& view) {
                                     std::set<std::string> matching;
                                     for (const auto& [uid, pod] : view.objects())
                                       if (!pod.finished()) matching.insert(uid);
                                     return selector >= seen_.size() || matching != seen_[selector];
                                   });
}

}  // namespace haulout::agent
