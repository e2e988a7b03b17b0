// `haulout drain`: checks all nodes before it changes anything (preflight), then cordons all, then evicts the pods of
// one node after the other. A failure of one node does not stop the next. A name that does not exist stops the command
// before it touches anything. If the command runs in a pod, that pod is evicted last, and its node is drained last. The
// summary of a node is printed when its drain ends; after an interruption, finish() prints the remaining summaries.
#pragma once

#include <memory>

#include "cli/drain/views.hpp"
#include "cli/program/job.hpp"
#include "cli/terminal/live_view.hpp"
#include "drain/drain.hpp"
#include "rehearse/timeline.hpp"

namespace haulout::cli {

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

}  // namespace haulout::cli
