// `haulout drain`: every node is preflighted, then cordoned, then evicted one after the other; one failure does not
// stop the next, but a name that does not exist stops all before anything is touched. The pod that it runs in, if any,
// is the last of its node, and that node the last. Each node's summary is printed when it is done with; an interruption
// prints those of the rest.
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
  // `view` shows progress as text; `live` is the same object if it is a live view, else nullptr.
  DrainJob(Tools tools, Settings settings, drain::DrainObserver& view, LiveView* live);
  ~DrainJob() override;
  boost::asio::awaitable<void> run() override;
  int finish(std::optional<int> signal) override;

 private:
  struct NodeDrain {
    std::unique_ptr<drain::Drain> drain;
    drain::RequestCounts requests;
    bool ended = false;       // a stage said so, or the last one is over
    bool summarised = false;  // for people
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
  NodeDrain* current_ = nullptr;          // its requests are being counted
  drain::RequestCounts charged_;          // counts that have been given to a node
  std::optional<int> failure_exit_code_;  // ended before there was a node to drain
};

}  // namespace haulout::cli
