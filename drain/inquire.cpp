// The part of Drain that sends the due questions of Inquiries, one at a time, beside the main loop. The drain does not
// wait for the answers.
#include <fmt/format.h>

#include "drain/drain_impl.hpp"
#include "drain/local_volumes.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// An object that does not exist is an answer, not a failure.
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
    case Inquiries::Kind::service: return ask_for_service(question.id);
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
  auto pods = co_await client_.list<k8s::Pod>(std::move(options), deadline_);
  if (!pods) co_return pods.error();
  inquiries_.known().members[budget_uid] = std::move(pods->items);
  co_return std::nullopt;
}

asio::awaitable<std::optional<Error>> Drain::Impl::ask_for_namespace(std::string name) {
  auto ns = co_await client_.get<k8s::Namespace>(name, within(request_timeout));
  if (!ns) co_return unless_gone(ns.error());
  inquiries_.known().namespaces[name] = fmt::format("{}", fmt::join(ns->conditions, "; "));
  co_return std::nullopt;
}

asio::awaitable<std::optional<Error>> Drain::Impl::ask_for_service(std::string key) {
  const std::size_t slash = key.find('/');
  auto service =
      co_await client_.get<k8s::Service>(key.substr(0, slash), key.substr(slash + 1), within(request_timeout));
  if (!service && !k8s::is_gone(service.error())) co_return service.error();
  inquiries_.known().services[key] = service ? std::optional(*std::move(service)) : std::nullopt;
  co_return std::nullopt;
}

asio::awaitable<std::optional<Error>> Drain::Impl::ask_for_local_volumes(std::string pod_uid) {
  const auto found = pipeline_->pods().find(pod_uid);
  if (found == pipeline_->pods().end()) co_return std::nullopt;
  auto local = co_await local_volume_of(client_, found->second.pod, hostname_of(node_),
                                        [this] { return within(request_timeout); });
  if (!local) co_return local.error();
  if (*local) inquiries_.known().local_volumes[pod_uid] = **std::move(local);
  co_return std::nullopt;
}

}  // namespace haulout::drain
