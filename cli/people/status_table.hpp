// The table of `haulout status`, as users of `kubectl get nodes` expect one. Pure.
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

// Widths of columns: they only grow, so that rows printed later stand beneath those printed before.
class StatusTable {
 public:
  explicit StatusTable(TableStyle style) : style_(style) {}

  std::string header() const;
  // Makes room for these rows.
  void fit(const std::vector<NodeView>& nodes, WallTime now);
  // Makes room for what STATE and REASON are in the course of an ordinary update, for tables that change.
  void fit_changes();
  // At most `width` columns.
  std::string row(const NodeView& node, WallTime now, std::size_t width = std::string::npos, bool utf8 = true) const;
  // A node that has gone.
  std::string gone(const std::string& name) const;

 private:
  using Cells = std::vector<std::string>;
  Cells titles() const;
  Cells cells(const NodeView& node, WallTime now) const;
  std::string line(const Cells& cells) const;

  TableStyle style_;
  std::vector<std::size_t> widths_;
};

// Table, a blank line, how far the fleet is and what holds it up.
std::vector<std::string> status_text(const Fleet& fleet, TableStyle style, WallTime now);
// The same on a terminal, redrawn in place: never more than height - 1 lines, none wider than width - 1 columns. Nodes
// that are updated give way first. `trouble`: why this may be old; empty: it is not.
std::vector<std::string> status_block(const Fleet& fleet, const std::string& trouble, TableStyle style,
                                      const Terminal& terminal, WallTime now);

}  // namespace haulout::cli
