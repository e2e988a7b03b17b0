// The diagnoses of a drain: sends the due questions of Inquiries, collects what holds the drain up, and reports the
// diagnoses that are raised and withdrawn. The drain does not wait for the answers. Borrows session, pipeline and
// feeds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drain/diagnoses.hpp"
#include "drain/feed.hpp"
#include "drain/feeds.hpp"
#include "drain/inquiries.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"

namespace haulout::drain {

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
