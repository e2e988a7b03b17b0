// A chart of bars over time, as a self-contained SVG file. Each row shows one item; time runs from left to right. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retry/clock.hpp"

namespace haulout::rehearse {

class SvgChart {
 public:
  // The chart shows the time from `begin` to `end`, but at least one second.
  SvgChart(WallTime begin, WallTime end, std::size_t rows);

  // name() and bar() return SVG elements of a row: its name, shortened to the width of the column of names; and a bar
  // with the CSS class and with `says` as tooltip.
  std::string name(std::size_t row, std::string_view text) const;
  std::string bar(std::string_view css_class, std::size_t row, WallTime from, WallTime until,
                  std::string_view says) const;
  // Returns a vertical line across all rows at this time.
  std::string mark(WallTime at) const;
  // Returns a line of text below the rows; `index` is the number of the line, from 0.
  std::string note(std::size_t index, std::string_view text) const;

  struct Key {
    std::string css_class;
    std::string colour;  // a CSS colour
    std::string means;
  };
  // Returns the whole SVG file. Its legend explains the bars by `keys`, and the vertical lines by `marks` unless
  // `marks` is empty. `inside` is the concatenation of what name(), bar(), mark() and note() returned; `notes` is the
  // number of notes in it.
  std::string file(std::string_view title, const std::vector<Key>& keys, std::string_view marks, std::size_t notes,
                   std::string_view inside) const;

 private:
  double bottom() const;
  double x_of(WallTime time) const;
  std::string grid() const;

  WallTime begin_;
  double span_;  // seconds from begin to end
  std::size_t rows_;
};

}  // namespace haulout::rehearse
