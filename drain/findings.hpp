// The diagnoses of a drain: sends the due questions of Inquiries, collects what holds the drain up, and reports the
// diagnoses that are raised and withdrawn. The drain does not wait for the answers. Borrows session, pipeline and
// feeds.
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

// Decides what the drain asks the server about pods that have been held for a while, so that their diagnoses can say
// more. Pure bookkeeping; Findings sends the questions.
//
// A drain that nothing holds up asks nothing. A question is due when its subject has been held for a while. It is
// repeated at growing intervals while the subject stays held, and is dropped together with its answer when the subject
// is not held any more. After two 403 answers in a row, questions of that kind are not sent again; the diagnosis then
// does without the answer.
class Inquiries {
 public:
  enum class Kind { members, ns, local_volumes, service };
  struct Question {
    Kind kind;
    std::string id;  // by kind: UID of the budget, namespace, UID of the pod, service as "ns/name"
    auto operator<=>(const Question&) const = default;
  };

  // How long a subject must have been held before the question is asked. Shorter than the hold time of the diagnosis
  // that uses the answer (LocalVolume has no hold time: only the answer can raise it).
  static Duration asked_after(Kind kind);

  // Finds out which subjects are held now: adds new questions, and drops the questions and answers of all others.
  void look(const Pipeline& pipeline, TimePoint now, WallTime server_now);
  // A question to send now, or nullopt.
  std::optional<Question> due(TimePoint now) const;
  // Time at which the next question becomes due, always later than `now`; max() if none does.
  TimePoint next_wake(TimePoint now) const;
  // Decides when, if ever, the question is sent again. If `failed` is false, the caller has stored the answer in
  // known(), unless there was nothing to store. `forbidden` means that the server returned 403.
  void answered(const Question& question, bool failed, bool forbidden, TimePoint now);

  // True while the subject of the question is held, also after it was answered.
  bool asks(const Question& question) const { return entries_.contains(question); }
  Known& known() { return known_; }
  const Known& known() const { return known_; }

 private:
  struct Entry {
    TimePoint due;
    Duration pause;  // wait before the question is asked again
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

  // Starts to ask the questions that are due, beside the loop.
  void look(TaskGroup& group);
  // Raises and withdraws diagnoses: those of the pipeline and the feeds, and `others`.
  void update(std::vector<DiagnosisFact> others);
  std::vector<Diagnosis> active() const { return board_.active(); }
  TimePoint next_wake(TimePoint at) const { return std::min(board_.next_due(at), inquiries_.next_wake(at)); }

 private:
  using Answer = std::optional<Error>;  // why the question has no answer

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
