#include "cli/drain/views.hpp"

#include "cli/drain/report_json.hpp"

namespace haulout::cli {

void LineView::on_event(const drain::Event& event) {
  const auto line = line_of(event, wording_);
  if (!line) return;
  is_line_of_kubectl(event.type) ? console_.say(*line) : console_.warn(*line);
}

void JsonlView::on_event(const drain::Event& event) {
  sink_.write(event_json(event) + '\n');
}

void Observers::on_event(const drain::Event& event) {
  for (drain::DrainObserver* observer : observers_) observer->on_event(event);
}

}  // namespace haulout::cli
