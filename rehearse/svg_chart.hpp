// A chart of bars over time as one self-contained SVG file: a row for each thing, time from left to right. Pure.
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
  // Of that many rows, from `begin` to `end`, or a second, if that is longer.
  SvgChart(WallTime begin, WallTime end, std::size_t rows);

  // In the row: its name, shortened to what there is room for, and bars of a class with what they say when pointed at.
  std::string name(std::size_t row, std::string_view text) const;
  std::string bar(std::string_view css_class, std::size_t row, WallTime from, WallTime until,
                  std::string_view says) const;
  // A line across all rows.
  std::string mark(WallTime at) const;
  // Below the rows, one under the other.
  std::string note(std::size_t index, std::string_view text) const;

  struct Key {
    std::string css_class;
    std::string colour;  // of CSS
    std::string means;
  };
  // The whole file. `keys` explain the bars; `marks`, unless empty, the lines. `inside` is made of the parts above.
  std::string file(std::string_view title, const std::vector<Key>& keys, std::string_view marks, std::size_t notes,
                   std::string_view inside) const;

 private:
  double bottom() const;
  double x_of(WallTime time) const;
  std::string grid() const;

  WallTime begin_;
  double span_;  // seconds
  std::size_t rows_;
};

}  // namespace haulout::rehearse
