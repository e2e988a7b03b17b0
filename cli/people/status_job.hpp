// `haulout status`: the job, and the table and the summary that it prints. The job is cancelled by a signal, and
// reports its errors itself (Job in program.hpp). It borrows what Tools refers to.
#pragma once

#include <string>
#include <vector>

#include "cli/people/fleet_summary.hpp"
#include "cli/people/people_job.hpp"
#include "cli/terminal/live_view.hpp"
#include "k8s/reflector.hpp"
#include "retry/notifier.hpp"
#include "retry/task_group.hpp"

namespace haulout::cli {

// The options of the table of `haulout status`. The table has the style of `kubectl get nodes`. Pure.
struct TableStyle {
  bool wide = false;
  bool color = false;
};

// Formats the rows of the table. Columns become wider and never narrower, so that later rows align with earlier ones.
class StatusTable {
 public:
  explicit StatusTable(TableStyle style) : style_(style) {}

  std::string header() const;
  // Widens the columns for the rows of these nodes.
  void fit(const std::vector<NodeView>& nodes, WallTime now);
  // Widens STATE for "rebooting,NotReady" and REASON for "BlockedByBudget", so that most changes of an update do not
  // move the columns. Longer reasons still do.
  void fit_changes();
  // Returns the row of the node, clipped to `width` columns.
  std::string row(const NodeView& node, WallTime now, std::size_t width = std::string::npos, bool utf8 = true) const;
  // Returns the row for a node that was deleted.
  std::string gone(const std::string& name) const;

 private:
  using Cells = std::vector<std::string>;
  Cells titles() const;
  Cells cells(const NodeView& node, WallTime now) const;
  std::string line(const Cells& cells) const;

  TableStyle style_;
  std::vector<std::size_t> widths_;
};

// Returns the output of `haulout status`: the table, a blank line, the numbers of nodes per stage of an update, and
// what keeps nodes from being updated.
std::vector<std::string> status_text(const Fleet& fleet, TableStyle style, WallTime now);
// Like status_text(), but limited to the size of the terminal, on which it is redrawn in place: at most height - 1
// lines, none wider than width - 1 columns. If space is short, leaves out up-to-date nodes first. `trouble` says why
// the data may be old; empty if it is current.
std::vector<std::string> status_block(const Fleet& fleet, const std::string& trouble, TableStyle style,
                                      const Terminal& terminal, WallTime now);

// `haulout status`: shows the fleet once. With -w, shows its changes until the command is interrupted or the reader
// closes the output: with -o json it prints one object per change; otherwise it redraws the table in place on a
// terminal, and elsewhere prints the table and then a row per change.
class StatusJob final : public Job {
 public:
  // `measure` measures the terminal on stdout. It is empty if stdout is not a terminal.
  StatusJob(Tools tools, Settings settings, std::function<Terminal()> measure);
  boost::asio::awaitable<void> run() override;
  int finish(std::optional<int> signal) override;

 private:
  boost::asio::awaitable<void> once();
  // Reads the nodes to show. Returns nullopt if none could be read; the errors are then already printed.
  boost::asio::awaitable<std::optional<std::vector<k8s::Node>>> read_nodes();
  boost::asio::awaitable<void> watch();
  boost::asio::awaitable<void> watch_in(TaskGroup& group);
  boost::asio::awaitable<void> look_for_reader();
  boost::asio::awaitable<void> follow_nodes();
  template <class T>
  boost::asio::awaitable<void> follow(k8s::Reflector<T>& view, std::optional<Error>& refused);
  // Returns true if there is enough data to show: the nodes have been listed, and the Leases and the ConfigMap have
  // been listed or the server refuses to list them.
  bool complete() const;
  Fleet view() const;
  void show_change(const Fleet& fleet);
  void show_trouble();
  void draw(const Fleet& fleet);
  std::string trouble() const;
  // Prints a warning for each node that the command line names and that does not exist. Does this only once.
  void name_missing();
  bool wanted(const k8s::Node& node) const;
  bool whole() const { return settings_.nodes.empty() && settings_.selector.empty(); }
  void failed(const Error& error) { exit_code_ = std::max(exit_code_, report_failure(tools_, error)); }
  TableStyle style() const;

  Tools tools_;
  Settings settings_;
  std::function<Terminal()> measure_;
  int exit_code_ = 0;

  // The members below are used only with -w.
  std::unique_ptr<Notifier> changed_;
  std::unique_ptr<k8s::Reflector<k8s::Node>> nodes_;
  std::unique_ptr<k8s::Reflector<k8s::Lease>> turns_;
  std::unique_ptr<k8s::Reflector<k8s::ConfigMap>> maps_;
  std::optional<Error> turns_refused_, maps_refused_;
  bool begun_ = false;
  bool unread_ = false;  // true if the reader of the output has closed the pipe
  std::optional<StatusTable> table_;
  std::map<std::string, NodeView> told_;  // the nodes as they were last printed; key: name
  std::vector<std::string> pauses_told_;
  std::string trouble_told_;
};

}  // namespace haulout::cli
