#include "drain/findings.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <set>
#include <string_view>

#include "drain/broken_gangs.hpp"
#include "drain/diagnoses.hpp"
#include "drain/pod_claims.hpp"
#include "drain/reasons.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// Treats an object that does not exist as a successful look-up: returns nullopt for that error. Returns any other
// error.
std::optional<Error> unless_gone(const Error& error) {
  return k8s::is_gone(error) ? std::nullopt : std::optional(error);
}

constexpr Duration first_pause = std::chrono::seconds(30);
constexpr Duration longest_pause = std::chrono::minutes(2);

// Returns true if the diagnosis of the budget depends on the state of the other pods that the budget selects.
bool members_matter(const BudgetBook& book, const std::string& uid, const k8s::Pod& held, WallTime server_now) {
  const auto budget = book.budgets().find(uid);
  if (!book.visible() || budget == book.budgets().end() || !budget->second.selector) return false;
  const auto fact = diagnose_budget({budget->second, {&held}, server_now});
  return fact && (fact->code == reason::budget_awaits_replacement || fact->code == reason::budget_unhealthy_deadlock);
}

// Maximum number of parked pods whose volumes are looked up at a time. That many are enough to show the cause.
constexpr std::size_t most_volumes = 10;

struct Look {
  WallTime server_now;
  std::set<Inquiries::Question> wanted{};
  std::set<std::string_view> judged{};  // UIDs of budgets already examined; hundreds of pods may wait for one budget
  std::size_t volumes = 0;
};

void add_questions(const TrackedPod& tracked, const BudgetBook& book, Look& look) {
  using Kind = Inquiries::Kind;
  if (!is_held(tracked)) return;
  if (!tracked.pod.claims.empty() && look.volumes++ < most_volumes)
    look.wanted.insert({Kind::local_volumes, tracked.pod.uid});
  if (tracked.refusal.verdict == EvictionVerdict::ns_terminating) look.wanted.insert({Kind::ns, tracked.pod.ns});
  if (const auto& webhook = tracked.refusal.webhook; webhook && !webhook->service.empty())
    look.wanted.insert({Kind::service, webhook->service});
  if (tracked.refusal.verdict != EvictionVerdict::budget || tracked.budgets->size() != 1) return;
  const std::string& uid = tracked.budgets->front();
  if (look.judged.insert(uid).second && members_matter(book, uid, tracked.pod, look.server_now))
    look.wanted.insert({Kind::members, uid});
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
  auto pods = co_await session_.client().list<k8s::Pod>(std::move(options), session_.deadline());
  if (!pods) co_return pods.error();
  inquiries_.known().members[budget_uid] = std::move(pods->items);
  co_return std::nullopt;
}

asio::awaitable<Findings::Answer> Findings::ask_for_namespace(std::string name) {
  auto ns = co_await session_.client().get<k8s::Namespace>(name, session_.within(request_timeout));
  if (!ns) co_return unless_gone(ns.error());
  inquiries_.known().namespaces[name] = fmt::format("{}", fmt::join(ns->conditions, "; "));
  co_return std::nullopt;
}

asio::awaitable<Findings::Answer> Findings::ask_for_service(std::string key) {
  const std::size_t slash = key.find('/');
  auto service = co_await session_.client().get<k8s::Service>(key.substr(0, slash), key.substr(slash + 1),
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
  // The server's clock is known only with an accuracy of one or two seconds. A smaller change of the offset is ignored,
  // so that it does not change the diagnoses.
  const Duration ahead = facts.server_now - session_.wall_now();
  if (std::chrono::abs(ahead - server_ahead_) >= std::chrono::seconds(2)) server_ahead_ = ahead;
  facts.server_ahead = server_ahead_;
  return facts;
}

void Findings::update(std::vector<DiagnosisFact> others) {
  auto facts = diagnose(pipeline_, node_facts(), inquiries_.known());
  feeds_.volumes.diagnose(facts);
  feeds_.controllers.diagnose(facts);
  feeds_.surge.diagnose(facts);
  feeds_.requests.diagnose(facts);
  diagnose_gangs(pipeline_.leaving(), pipeline_.pods(), session_.options().policy, facts);
  std::move(others.begin(), others.end(), std::back_inserter(facts));
  const auto changes = board_.update(facts, session_.now(), session_.wall_now());
  for (const Diagnosis& diagnosis : changes.raised) session_.emit(EventType::diagnosis_raised, diagnosis);
  for (const Diagnosis& diagnosis : changes.withdrawn) session_.emit(EventType::diagnosis_withdrawn, diagnosis);
}

Duration Inquiries::asked_after(Kind kind) {
  return kind == Kind::ns ? std::chrono::seconds(290) : std::chrono::seconds(10);
}

void Inquiries::look(const Pipeline& pipeline, TimePoint now, WallTime server_now) {
  Look seen{server_now};
  for (const TrackedPod* tracked : pipeline.leaving()) add_questions(*tracked, pipeline.book(), seen);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (seen.wanted.contains(entry->first)) {
      ++entry;
      continue;
    }
    forget(entry->first);
    entry = entries_.erase(entry);
  }
  for (const Question& question : seen.wanted)
    entries_.try_emplace(question, Entry{now + asked_after(question.kind), first_pause});
}

std::optional<Inquiries::Question> Inquiries::due(TimePoint now) const {
  for (const auto& [question, entry] : entries_)
    if (entry.due <= now && !given_up(question.kind)) return question;
  return std::nullopt;
}

TimePoint Inquiries::next_wake(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& [question, entry] : entries_)
    if (entry.due > now && !given_up(question.kind)) next = std::min(next, entry.due);
  return next;
}

void Inquiries::answered(const Question& question, bool failed, bool forbidden, TimePoint now) {
  unsigned& refusals = refusals_.at(static_cast<std::size_t>(question.kind));
  refusals = forbidden ? refusals + 1 : 0;
  const auto entry = entries_.find(question);
  if (entry == entries_.end()) {
    forget(question);
    return;
  }
  // The node to which a volume is bound does not change, so that question is not repeated.
  const bool once = question.kind == Kind::local_volumes && !failed;
  entry->second.due = once ? TimePoint::max() : now + entry->second.pause;
  entry->second.pause = std::min(2 * entry->second.pause, longest_pause);
}

void Inquiries::forget(const Question& question) {
  switch (question.kind) {
    case Kind::members: known_.members.erase(question.id); break;
    case Kind::ns: known_.namespaces.erase(question.id); break;
    case Kind::local_volumes: known_.local_volumes.erase(question.id); break;
    case Kind::service: known_.services.erase(question.id); break;
  }
}

}  // namespace haulout::drain
