// The jobs of `haulout drain`, `cordon` and `uncordon`, and the observers that print the progress of a drain.
// live_view.hpp is the observer for terminals.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/drain/wording.hpp"
#include "cli/program/job.hpp"
#include "cli/program/program.hpp"
#include "cli/terminal/console.hpp"
#include "cli/terminal/live_view.hpp"
#include "drain/cordon.hpp"
#include "drain/drain.hpp"
#include "drain/observer.hpp"
#include "rehearse/timeline.hpp"

namespace haulout::cli {

// Prints one line of text per change in a drain: lines that kubectl prints, too, as results (Console::say), all others
// as warnings (Console::warn). Borrows the console.
class LineView final : public drain::DrainObserver {
 public:
  LineView(Console& console, Wording wording) : console_(console), wording_(std::move(wording)) {}
  void on_event(const drain::Event& event) override;

 private:
  Console& console_;
  Wording wording_;
};

// Writes one JSON object per event of a drain, each on its own line (docs/output.md). Borrows the sink.
class JsonlView final : public drain::DrainObserver {
 public:
  explicit JsonlView(agent::Sink& sink) : sink_(sink) {}
  void on_event(const drain::Event& event) override;

 private:
  agent::Sink& sink_;
};

// Passes every event to its observers, in the order in which they were added. Borrows the observers.
class Observers final : public drain::DrainObserver {
 public:
  void add(drain::DrainObserver& observer) { observers_.push_back(&observer); }
  void on_event(const drain::Event& event) override;

 private:
  std::vector<drain::DrainObserver*> observers_;
};

// `haulout cordon` and `haulout uncordon`. The job looks up all nodes first, and changes none if a look-up fails. Then
// it changes one node after the other; a failure does not stop the next change.
class CordonJob final : public Job {
 public:
  CordonJob(Tools tools, Settings settings);
  boost::asio::awaitable<void> run() override;
  int finish(std::optional<int> signal) override;

 private:
  Task<std::vector<k8s::Node>> look_up();
  Task<drain::CordonChange> change(k8s::Node node);

  Tools tools_;
  Settings settings_;
  std::vector<k8s::Node> left_;  // nodes that the job has not changed yet
  bool changing_ = false;  // true while a change of the first node in `left_` is in flight; never true in a dry run
  int exit_code_ = 0;
};

// `haulout drain`: checks all nodes before it changes anything (preflight), then cordons all, then evicts the pods of
// one node after the other. A failure of one node does not stop the next. A name that does not exist stops the command
// before it touches anything. If the command runs in a pod, that pod is evicted last, and its node is drained last. The
// summary of a node is printed when its drain ends; after an interruption, finish() prints the remaining summaries.
class DrainJob final : public Job {
 public:
  // `view` shows progress as text; `live` is the same object if it is a live view, else nullptr. Borrows both.
  DrainJob(Tools tools, Settings settings, drain::DrainObserver& view, LiveView* live);
  ~DrainJob() override;
  boost::asio::awaitable<void> run() override;
  int finish(std::optional<int> signal) override;

 private:
  struct NodeDrain {
    std::unique_ptr<drain::Drain> drain;
    drain::RequestCounts requests;
    bool ended = false;       // true if a stage has ended the drain of the node, or the last stage is over
    bool summarised = false;  // true if the summary of the node has been printed
  };
  enum class Stage { preflight, cordon, evict };

  Task<std::vector<std::string>> node_names();
  Task<std::optional<k8s::Self>> own_identity();
  boost::asio::awaitable<void> run_stage(Stage stage);
  void after_stage(NodeDrain& node, Stage stage, bool goes_on);
  void charge_requests();
  void summarise(NodeDrain& node);
  void draw();
  drain::Report report_of(const NodeDrain& node) const;

  Tools tools_;
  Settings settings_;
  Wording wording_;
  JsonlView jsonl_;
  rehearse::Timeline timeline_;
  Observers observers_;
  LiveView* live_;
  std::vector<NodeDrain> nodes_;
  NodeDrain* current_ = nullptr;          // node to which requests are charged now; nullptr between stages
  drain::RequestCounts charged_;          // what the request ledger had counted at the last charge_requests()
  std::optional<int> failure_exit_code_;  // set if the command failed before it had a node to drain
};

// Makes the jobs of `haulout drain`, `cordon` and `uncordon`. A drain gets a live view if its text goes to a terminal,
// else a view that prints one line per change. Implements MakeJob (program.hpp). `settings.command` must be drain,
// cordon or uncordon.
std::unique_ptr<Job> make_drain_job(agent::Process& process, Tools tools, const Settings& settings);

}  // namespace haulout::cli
