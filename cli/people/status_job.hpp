// `haulout status`: shows the fleet once, or with -w until it is interrupted or the reader closes its output. With -w
// it redraws the table in place on a terminal; elsewhere it prints the table and then a row per change.
#pragma once

#include "cli/people/people_job.hpp"
#include "cli/people/status_table.hpp"
#include "k8s/reflector.hpp"
#include "retry/notifier.hpp"
#include "retry/task_group.hpp"

namespace haulout::cli {

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
