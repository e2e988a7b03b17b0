#include "drain/findings.hpp"

#include <fmt/format.h>

#include "drain/local_volumes.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// An object that does not exist is an answer, not a failure.
std::optional<Error> unless_gone(const Error& error) {
  return k8s::is_gone(error) ? std::nullopt : std::optional(error);
}

}  // namespace

void Findings::look(TaskGroup& group) {
  inquiries_.look(pipeline_, session_.now(), session_.client().server_now());
  if (!asker_.runs() && inquiries_.due(session_.now())) asker_.start(group, ask_all());
}

asio::awaitable<void> Findings::ask_all() {
  while (const auto question = inquiries_.due(session_.now())) {
    const auto error = co_await ask(*question);
    inquiries_.answered(*question, error.has_value(), error && k8s::is_forbidden(*error), session_.now());
    session_.changed().notify();
  }
}

asio::awaitable<Findings::Answer> Findings::ask(Inquiries::Question question) {
  switch (question.kind) {
    case Inquiries::Kind::members: return ask_for_members(question.id);
    case Inquiries::Kind::ns: return ask_for_namespace(question.id);
    case Inquiries::Kind::service: return ask_for_service(question.id);
    case Inquiries::Kind::local_volumes: break;
  }
  return ask_for_local_volumes(question.id);
}

asio::awaitable<Findings::Answer> Findings::ask_for_members(std::string budget_uid) {
  const auto budget = pipeline_.book().budgets().find(budget_uid);
  if (budget == pipeline_.book().budgets().end() || !budget->second.selector) co_return std::nullopt;
  k8s::ListOptions options;
  options.ns = budget->second.ns;
  options.label_selector = to_string(*budget->second.selector);
  options.limit = session_.options().page_size;
  auto pods = co_await session_.client().list<k8s::Pod>(k8s::Resource::pods, std::move(options), session_.deadline());
  if (!pods) co_return pods.error();
  inquiries_.known().members[budget_uid] = std::move(pods->items);
  co_return std::nullopt;
}

asio::awaitable<Findings::Answer> Findings::ask_for_namespace(std::string name) {
  auto ns = co_await session_.client().get_namespace(name, session_.within(request_timeout));
  if (!ns) co_return unless_gone(ns.error());
  inquiries_.known().namespaces[name] = fmt::format("{}", fmt::join(ns->conditions, "; "));
  co_return std::nullopt;
}

asio::awaitable<Findings::Answer> Findings::ask_for_service(std::string key) {
  const std::size_t slash = key.find('/');
  auto service = co_await session_.client().get_service(key.substr(0, slash), key.substr(slash + 1),
                                                        session_.within(request_timeout));
  if (!service && !k8s::is_gone(service.error())) co_return service.error();
  inquiries_.known().services[key] = service ? std::optional(*std::move(service)) : std::nullopt;
  co_return std::nullopt;
}

asio::awaitable<Findings::Answer> Findings::ask_for_local_volumes(std::string pod_uid) {
  const auto found = pipeline_.pods().find(pod_uid);
  if (found == pipeline_.pods().end()) co_return std::nullopt;
  auto local = co_await local_volume_of(session_.client(), found->second.pod, hostname_of(feeds_.node.node()),
                                        [this] { return session_.within(request_timeout); });
  if (!local) co_return local.error();
  if (*local) inquiries_.known().local_volumes[pod_uid] = **std::move(local);
  co_return std::nullopt;
}

NodeFacts Findings::node_facts() {
  NodeFacts facts = feeds_.node.facts();
  facts.pods_error = feeds_.pods.error();
  facts.server_now = session_.client().server_now();
  // The server's clock is known only to a second or two. A smaller change of the offset is ignored, so that it changes
  // no diagnosis.
  const Duration ahead = facts.server_now - session_.wall_now();
  if (std::chrono::abs(ahead - server_ahead_) >= std::chrono::seconds(2)) server_ahead_ = ahead;
  facts.server_ahead = server_ahead_;
  return facts;
}

void Findings::update(std::vector<DiagnosisFact> others) {
  auto facts = diagnose(pipeline_, node_facts(), inquiries_.known());
  feeds_.volumes.diagnose(facts);
  feeds_.controllers.diagnose(facts);
  std::move(others.begin(), others.end(), std::back_inserter(facts));
  const auto changes = board_.update(facts, session_.now(), session_.wall_now());
  for (const Diagnosis& diagnosis : changes.raised) session_.emit(EventType::diagnosis_raised, diagnosis);
  for (const Diagnosis& diagnosis : changes.withdrawn) session_.emit(EventType::diagnosis_withdrawn, diagnosis);
}

}  // namespace haulout::drain
