// The diagnoses of a drain. Sends the look-ups that Inquiries has scheduled, collects the conditions that keep the
// drain from ending, and reports the diagnoses that are raised and withdrawn. The drain does not wait for the answers;
// a look-up that fails is repeated later. Look-ups run as a child of the task group of look(), which cancels them.
// Borrows session, pipeline and feeds.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drain/diagnoses.hpp"
#include "drain/feed.hpp"
#include "drain/feeds.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"

namespace haulout::drain {

// Schedules look-ups (questions) about pods that have been parked for a while, so that their diagnoses can be more
// exact. Pure bookkeeping; Findings sends the requests.
//
// If no pod is parked, no request is sent. The subject of a question is a budget, namespace or webhook Service because
// of which pods are parked, or a parked pod that has claims. A question is due when pods have been parked because of
// its subject, or the pod itself has been parked, for a while (asked_after()). It is repeated at growing intervals; the
// question about a pod's claims is not repeated after an answer. A question is dropped together with its answer when
// no pod is parked because of its subject any more. After two 403 answers in a row, questions of that kind are not sent
// again; the diagnosis is then made without the answer.
class Inquiries {
 public:
  enum class Kind { members, ns, local_volumes, service };
  struct Question {
    Kind kind;
    std::string id;  // by kind: UID of the budget, namespace, UID of the pod, service as "ns/name"
    auto operator<=>(const Question&) const = default;
  };

  // Returns how long pods must have been parked because of a subject before its question is due. Shorter than the hold
  // time of the diagnosis that uses the answer. (LocalVolume has no hold time: only the answer can raise it.)
  static Duration asked_after(Kind kind);

  // Adds the questions about subjects because of which pods are parked now, and drops all others with their answers.
  void look(const Pipeline& pipeline, TimePoint now, WallTime server_now);
  // Returns a question to send now, or nullopt.
  std::optional<Question> due(TimePoint now) const;
  // Returns the time at which the next question becomes due, always later than `now`; max() if none does.
  TimePoint next_wake(TimePoint now) const;
  // Decides when, if ever, the question is sent again. If `failed` is false, the caller has stored the answer in
  // known(), unless there was nothing to store. `forbidden` means that the server returned 403.
  void answered(const Question& question, bool failed, bool forbidden, TimePoint now);

  // Returns true while pods are parked because of the question's subject, even if the question was answered.
  bool asks(const Question& question) const { return entries_.contains(question); }
  Known& known() { return known_; }
  const Known& known() const { return known_; }

 private:
  struct Entry {
    TimePoint due;
    Duration pause;  // time until the question is sent again
  };
  bool given_up(Kind kind) const { return refusals_.at(static_cast<std::size_t>(kind)) >= 2; }
  void forget(const Question& question);

  std::map<Question, Entry> entries_;
  std::array<unsigned, 4> refusals_{};  // consecutive 403 answers, by Kind
  Known known_;
};

class Findings {
 public:
  Findings(Session& session, Pipeline& pipeline, Feeds feeds) : session_(session), pipeline_(pipeline), feeds_(feeds) {}

  // Starts to send the questions that are due, concurrently with the main loop.
  void look(TaskGroup& group);
  // Raises and withdraws diagnoses by the conditions that hold now: those of the pipeline and the feeds, and `others`.
  void update(std::vector<DiagnosisFact> others);
  std::vector<Diagnosis> active() const { return board_.active(); }
  TimePoint next_wake(TimePoint at) const { return std::min(board_.next_due(at), inquiries_.next_wake(at)); }

 private:
  using Answer = std::optional<Error>;  // why the question has no answer; nullopt if it has one

  boost::asio::awaitable<void> ask_all();
  boost::asio::awaitable<Answer> ask(Inquiries::Question question);
  boost::asio::awaitable<Answer> ask_for_members(std::string budget_uid);
  boost::asio::awaitable<Answer> ask_for_namespace(std::string name);
  boost::asio::awaitable<Answer> ask_for_service(std::string key);
  boost::asio::awaitable<Answer> ask_for_local_volumes(std::string pod_uid);
  NodeFacts node_facts();

  Session& session_;
  Pipeline& pipeline_;
  Feeds feeds_;
  Inquiries inquiries_;
  SingleTask asker_;
  DiagnosisBoard board_;
  Duration server_ahead_{};
};

}  // namespace haulout::drain
