#include "agent/report/open_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.hpp"

namespace haulout::agent {
namespace {

// Removes the first part of `rest`, up to `separator`, and returns it without blanks around it.
std::string_view next_part(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  part.remove_prefix(std::min(part.find_first_not_of(" \t"), part.size()));
  return part.substr(0, part.find_last_not_of(" \t") + 1);
}

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& each : made)
    if (each >= 'A' && each <= 'Z') each = static_cast<char>(each - 'A' + 'a');
  return made;
}

// One element of a header Accept.
struct MediaRange {
  std::string type{};
  std::string version{};  // empty if none is named
  double q = 1;
};

std::optional<MediaRange> media_range(std::string_view text) {
  MediaRange range;
  range.type = lower(next_part(text, ';'));
  if (range.type.find('/') == std::string::npos) return std::nullopt;
  while (!text.empty()) {
    std::string_view value = next_part(text, ';');
    const std::string name = lower(next_part(value, '='));
    if (value.size() > 1 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    if (name == "version") range.version = value;
    if (name != "q") continue;
    const auto q = parse_number<double>(value);
    if (!q || !(*q >= 0 && *q <= 1)) return std::nullopt;
    range.q = *q;
  }
  return range;
}

// How well a media range describes the text format 0.0.4: the most precise one counts. 0 if it does not.
int precision_for_text(const MediaRange& range) {
  if (range.type == "text/plain") return range.version == "0.0.4" ? 4 : range.version.empty() ? 3 : 0;
  return range.type == "text/*" ? 2 : range.type == "*/*" ? 1 : 0;
}

// The name of a family in OpenMetrics: that of a counter lacks the suffix of its samples.
std::string_view family_of(std::string_view name) {
  return name.ends_with("_total") ? name.substr(0, name.size() - 6) : name;
}

std::string_view unit_of(std::string_view family) {
  for (const std::string_view unit : {"seconds", "bytes"})
    if (family.ends_with(unit) && family.substr(0, family.size() - unit.size()).ends_with('_')) return unit;
  return {};
}

// OpenMetrics also escapes quotes in help texts.
std::string with_escaped_quotes(std::string_view help) {
  std::string escaped;
  for (const char each : help) {
    if (each == '"') escaped += '\\';
    escaped += each;
  }
  return escaped;
}

std::string metadata_line(std::string_view line) {
  std::string_view rest = line.substr(2);
  const std::string_view keyword = next_part(rest, ' ');
  const std::string_view family = family_of(next_part(rest, ' '));
  if (keyword == "HELP") return fmt::format("# HELP {} {}\n", family, with_escaped_quotes(rest));
  std::string lines = fmt::format("# {} {} {}\n", keyword, family, rest);
  if (const auto unit = unit_of(family); !unit.empty()) lines += fmt::format("# UNIT {} {}\n", family, unit);
  return lines;
}

bool is_bucket(std::string_view line) {
  const std::size_t labels = std::min(line.find('{'), line.size());
  return line.substr(0, labels).ends_with("_bucket") &&
         (line.substr(labels).starts_with("{le=\"") || line.find(",le=\"") != std::string_view::npos);
}

// A bucket's limit is a number with a point in OpenMetrics: le="10.0" and not le="10".
std::string bucket_line(std::string_view line) {
  const std::size_t end = std::min(line.rfind("\"}"), line.size());
  const std::size_t begin = line.rfind('"', end - 1) + 1;
  const std::string_view limit = line.substr(begin, end - begin);
  const bool whole = limit.find_first_not_of("0123456789") == std::string_view::npos;
  return fmt::format("{}{}{}\n", line.substr(0, end), whole ? ".0" : "", line.substr(end));
}

}  // namespace

bool prefers_open_metrics(std::string_view accept) {
  double open_metrics = 0, text = 0;
  int precision = 0;
  while (!accept.empty()) {
    const std::string_view part = next_part(accept, ',');
    if (part.empty()) continue;  // a list may have empty elements
    const auto range = media_range(part);
    if (!range) return false;
    if (range->type == "application/openmetrics-text" && (range->version.empty() || range->version == "1.0.0"))
      open_metrics = std::max(open_metrics, range->q);
    if (const int found = precision_for_text(*range); found > precision) {
      precision = found;
      text = range->q;
    }
  }
  return open_metrics > text;
}

std::string open_metrics(std::string_view text) {
  std::string made;
  made.reserve(text.size() + text.size() / 4);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("# ")) {
      made += metadata_line(line);
    } else if (is_bucket(line)) {
      made += bucket_line(line);
    } else {
      made += line;
      made += '\n';
    }
  }
  return made + "# EOF\n";
}

}  // namespace haulout::agent
