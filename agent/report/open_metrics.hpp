// The text format of OpenMetrics 1.0, made from Prometheus' text format 0.0.4. Prometheus prefers it. Pure.
#pragma once

#include <string>
#include <string_view>

namespace haulout::agent {

inline constexpr std::string_view open_metrics_content_type =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Returns true if the client that sent this header Accept prefers OpenMetrics 1.0 to the text format 0.0.4: it names
// application/openmetrics-text, with a greater q than the text format has. Returns false for a header that cannot be
// read.
bool prefers_open_metrics(std::string_view accept);

// Returns the same metrics in OpenMetrics. `text` is in the text format 0.0.4, and has no timestamps. The names of its
// counters, and no others, end with _total. The last label of a bucket of a histogram is `le`.
std::string open_metrics(std::string_view text);

}  // namespace haulout::agent
