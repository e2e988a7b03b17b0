// Drain asks what its inquiries have due, one question at a time, beside the loop: nothing waits for the answers.
#include "drain/drain_impl.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

constexpr std::string_view hostname_label = "kubernetes.io/hostname";

// Nothing to see is an answer, too.
std::optional<Error> unless_gone(const Error& error) {
  return k8s::is_gone(error) ? std::nullopt : std::optional(error);
}

}  // namespace

asio::awaitable<void> Drain::Impl::inquire() {
  while (const auto question = inquiries_.due(now())) {
    const auto error = co_await ask(*question);
    inquiries_.answered(*question, error.has_value(), error && k8s::is_forbidden(*error), now());
    changed_->notify();
  }
  inquires_ = false;
}

asio::awaitable<std::optional<Error>> Drain::Impl::ask(const Inquiries::Question& question) {
  switch (question.kind) {
    case Inquiries::Kind::members: return ask_for_members(question.id);
    case Inquiries::Kind::ns: return ask_for_namespace(question.id);
    case Inquiries::Kind::local_volumes: break;
  }
  return ask_for_local_volumes(question.id);
}

asio::awaitable<std::optional<Error>> Drain::Impl::ask_for_members(std::string budget_uid) {
  const auto budget = pipeline_->book().budgets().find(budget_uid);
  if (budget == pipeline_->book().budgets().end() || !budget->second.selector) co_return std::nullopt;
  k8s::ListOptions options;
  options.ns = budget->second.ns;
  options.label_selector = to_string(*budget->second.selector);
  options.limit = options_.page_size;
  auto pods = co_await client_.list<k8s::Pod>(k8s::Resource::pods, std::move(options), within(list_timeout));
  if (!pods) co_return pods.error();
  inquiries_.known().members[budget_uid] = std::move(pods->items);
  co_return std::nullopt;
}

asio::awaitable<std::optional<Error>> Drain::Impl::ask_for_namespace(std::string name) {
  auto ns = co_await client_.get_namespace(name, within(request_timeout));
  if (!ns) co_return unless_gone(ns.error());
  inquiries_.known().namespaces[name] = fmt::format("{}", fmt::join(ns->conditions, "; "));
  co_return std::nullopt;
}

// By its claims: a local volume has no VolumeAttachment.
asio::awaitable<std::optional<Error>> Drain::Impl::ask_for_local_volumes(std::string pod_uid) {
  const auto found = pipeline_->pods().find(pod_uid);
  if (found == pipeline_->pods().end()) co_return std::nullopt;
  const k8s::Pod pod = found->second.pod;
  const auto label = node_.labels.find(std::string(hostname_label));
  const std::string hostname = label == node_.labels.end() ? node_name_ : label->second;
  for (const std::string& name : pod.claims) {
    const auto claim = co_await client_.get_persistent_volume_claim(pod.ns, name, within(request_timeout));
    if (!claim && !k8s::is_gone(claim.error())) co_return claim.error();
    if (!claim || claim->volume_name.empty()) continue;
    const auto volume = co_await client_.get_persistent_volume(claim->volume_name, within(request_timeout));
    if (!volume && !k8s::is_gone(volume.error())) co_return volume.error();
    if (!volume || volume->hostnames.empty()) continue;
    if (std::any_of(volume->hostnames.begin(), volume->hostnames.end(),
                    [&](const std::string& one) { return one != hostname; }))
      continue;
    inquiries_.known().local_volumes[pod_uid] = fmt::format(
        "its volume {} (claim {}/{}) exists on this node only: once evicted, its replacement stays Pending "
        "until the node takes pods again. Let its owner move the data first, or accept that for as long as "
        "the maintenance takes",
        volume->name, pod.ns, name);
    break;
  }
  co_return std::nullopt;
}

}  // namespace haulout::drain
