// The jobs of `haulout drain`, `retire`, `cordon` and `uncordon`, and the drain observers that print progress as lines
// of text or as JSON. live_view.hpp has the observer for terminals. Jobs are cancelled by a signal, and report their
// errors themselves (Job in program.hpp). They borrow what Tools refers to.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "cli/drain/local_retirement.hpp"
#include "cli/drain/wording.hpp"
#include "cli/program/program.hpp"
#include "cli/terminal/console.hpp"
#include "cli/terminal/live_view.hpp"
#include "drain/cordon.hpp"
#include "drain/drain.hpp"
#include "drain/observer.hpp"
#include "drain/retirement.hpp"
#include "rehearse/timeline.hpp"

namespace haulout::cli {

// Prints one line of text per change in a drain. Lines that kubectl prints, too, are printed as results (Console::say),
// all others as warnings (Console::warn). Borrows the console.
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

// The job of `haulout cordon` and `haulout uncordon`. It looks up all nodes first, and changes none if a look-up fails.
// Then it changes one node after another. If the change of one node fails, it continues with the next.
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

// The job of `haulout drain` and `haulout retire`. It checks all nodes before it changes anything (preflight), then
// cordons all nodes, then evicts the pods of one node after another, or of Settings::parallel nodes at the same time.
// If one node fails, it continues with the next. If a named node does not exist, it fails before it changes anything.
// If the command runs in a pod, it evicts that pod last, and drains that pod's node alone after all others. It prints
// the summary of a node when the drain of the node ends. After an interruption, finish() prints the remaining
// summaries.
//
// `retire` deletes the Node of each node right after its drain, if the drain has succeeded (drain/retirement.hpp). It
// changes nothing if the agent of one of the nodes is updating it, or if it runs in a pod of one of the nodes. With
// --local it also cleans up the machine, right before it deletes the Node (local_retirement.hpp).
class DrainJob final : public Job {
 public:
  // `view` shows progress as text; `live` is the same object if it is a live view, else nullptr. Borrows both.
  // `machine` is the machine that `retire --local` cleans up; nullptr in all other cases.
  DrainJob(Tools tools, Settings settings, drain::DrainObserver& view, LiveView* live,
           std::unique_ptr<LocalMachine> machine = nullptr);
  ~DrainJob() override;
  boost::asio::awaitable<void> run() override;
  // Gives back the pods that the drains have surged, and withdraws their EvictionRequests.
  boost::asio::awaitable<void> clean_up() override;
  int finish(std::optional<int> signal) override;

 private:
  struct NodeDrain {
    explicit NodeDrain(k8s::Client& origin) : transport(origin.transport()), client(origin, transport) {}

    agent::CountingTransport transport;  // counts the requests about this node
    k8s::Client client;
    std::unique_ptr<drain::Drain> drain;
    std::unique_ptr<drain::Retirement> retirement;  // nullptr: its Node was not to be deleted, or not yet
    bool ended = false;                  // true if a stage has ended the drain of the node, or the last stage is over
    bool summarised = false;             // true if the summary of the drain has been printed
    bool retirement_summarised = false;  // true if what happened to its Node has been printed
  };

  Task<std::vector<std::string>> node_names();
  Task<std::optional<k8s::Self>> own_identity();
  void refuse(const std::string& what, std::string_view why);
  bool find_local_node();
  boost::asio::awaitable<bool> may_retire(std::vector<std::string> names);
  boost::asio::awaitable<void> retire(NodeDrain& node);
  boost::asio::awaitable<void> preflight();
  boost::asio::awaitable<void> cordon();
  boost::asio::awaitable<void> evict_all();
  boost::asio::awaitable<void> evict_nodes(std::size_t end);
  boost::asio::awaitable<void> evict(NodeDrain& node);
  boost::asio::awaitable<void> clean_up(NodeDrain& node);
  void end(NodeDrain& node);
  void summarise(NodeDrain& node);
  void print(const Summary& text);
  void advise(const Error& error);
  void draw();
  drain::Report report_of(const NodeDrain& node) const;

  Tools tools_;
  Settings settings_;
  Wording wording_;
  JsonlView jsonl_;
  rehearse::Timeline timeline_;
  Observers observers_;
  LiveView* live_;
  std::unique_ptr<LocalRetirement> local_;  // nullptr without --local
  std::deque<NodeDrain> nodes_;
  std::size_t next_ = 0;                  // the first of `nodes_` whose pods are not being evicted yet
  bool own_node_is_last_ = false;         // this program runs in a pod of the last node
  std::optional<int> failure_exit_code_;  // set if the command failed before it had a node to drain
};

// Makes the job of `haulout drain`, `retire`, `cordon` or `uncordon`; `settings.command` must be one of these. A drain
// shows its progress on stdout with text output, otherwise on stderr: in a live view if that is a terminal, else in a
// view that prints one line per change. Implements MakeJob (program.hpp).
std::unique_ptr<Job> make_drain_job(agent::Process& process, Tools tools, const Settings& settings);

}  // namespace haulout::cli
