// `haulout status`: the job, and the table that it prints.
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

// The table of `haulout status`, in the style of `kubectl get nodes`. Pure.
struct TableStyle {
  bool wide = false;
  bool color = false;
};

// Formats the rows of the table. The widths of its columns only grow, so that later rows align with earlier ones.
class StatusTable {
 public:
  explicit StatusTable(TableStyle style) : style_(style) {}

  std::string header() const;
  // Widens the columns for the rows of these nodes.
  void fit(const std::vector<NodeView>& nodes, WallTime now);
  // Widens the columns STATE and REASON for all values of an ordinary update. Used for tables to which rows are added
  // later.
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

// Returns the output of `haulout status`: the table, a blank line, how far the updates of the fleet are, and what holds
// them up.
std::vector<std::string> status_text(const Fleet& fleet, TableStyle style, WallTime now);
// Like status_text(), but cut to fit the terminal, on which it is redrawn in place: at most height - 1 lines, none
// wider than width - 1 columns. If space is short, omits up-to-date nodes first. `trouble` says why the data may be
// old; empty if it is current.
std::vector<std::string> status_block(const Fleet& fleet, const std::string& trouble, TableStyle style,
                                      const Terminal& terminal, WallTime now);

// `haulout status`: shows the fleet once, or with -w until it is interrupted or the reader closes its output. With -w
// it redraws the table in place on a terminal; elsewhere it prints the table and then a row per change.
class StatusJob final : public Job {
 public:
  // `measure` measures the terminal on stdout. It is empty if stdout is no terminal.
  StatusJob(Tools tools, Settings settings, std::function<Terminal()> measure);
  boost::asio::awaitable<void> run() override;
  int finish(std::optional<int> signal) override;

 private:
  boost::asio::awaitable<void> once();
  // Reads the nodes to show. Returns nothing if no node could be read; the errors are then already reported.
  boost::asio::awaitable<std::optional<std::vector<k8s::Node>>> read_nodes();
  boost::asio::awaitable<void> watch();
  boost::asio::awaitable<void> watch_in(TaskGroup& group);
  boost::asio::awaitable<void> look_for_reader();
  template <class T>
  boost::asio::awaitable<void> follow(k8s::Reflector<T>& view, std::optional<Error>& refused);
  // Returns true if there is enough to show: the nodes are listed, and the Leases and ConfigMaps are listed or the
  // server refuses to list them.
  bool complete() const;
  Fleet view() const;
  void show_change(const Fleet& fleet);
  void show_trouble();
  void draw(const Fleet& fleet);
  std::string trouble() const;
  // Warns, only once, of nodes that the command line names and that do not exist.
  void name_missing();
  bool wanted(const k8s::Node& node) const;
  bool whole() const { return settings_.nodes.empty() && settings_.selector.empty(); }
  void failed(const Error& error) { exit_code_ = std::max(exit_code_, report_failure(tools_, error)); }
  TableStyle style() const;

  Tools tools_;
  Settings settings_;
  std::function<Terminal()> measure_;
  int exit_code_ = 0;

  // Members that only a watch (-w) uses.
  std::unique_ptr<Notifier> changed_;
  std::unique_ptr<k8s::Reflector<k8s::Node>> nodes_;
  std::unique_ptr<k8s::Reflector<k8s::Lease>> turns_;
  std::unique_ptr<k8s::Reflector<k8s::ConfigMap>> maps_;
  std::optional<Error> nodes_refused_, turns_refused_, maps_refused_;
  bool begun_ = false;
  bool unread_ = false;  // true if the reader of the output has closed it
  std::optional<StatusTable> table_;
  std::map<std::string, NodeView> told_;  // the nodes as they were printed last; key: name
  std::vector<std::string> pauses_told_;
  std::string trouble_told_;
};

}  // namespace haulout::cli
