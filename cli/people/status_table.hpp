// The table of `haulout status`, in the style of `kubectl get nodes`. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/people/fleet_summary.hpp"
#include "cli/terminal/live_view.hpp"

namespace haulout::cli {

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

}  // namespace haulout::cli
