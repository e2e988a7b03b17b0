#include "cli/terminal/live_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/duration.hpp"
#include "base/text.hpp"
#include "cli/terminal/progress_bar.hpp"

namespace haulout::cli {
namespace {

using drain::EventType;
using drain::PodOutcome;

// If a pod's line has fewer columns left than this, the reason why the pod waits gets a line of its own. It is the
// length of "blocked by PodDisruptionBudget shop/checkout".
constexpr std::size_t narrowest_hold = 44;

// Formats a time span in whole seconds, because digits that change faster are not readable.
std::string elapsed(WallTime since, WallTime now) {
  return format_duration(std::chrono::floor<std::chrono::seconds>(std::max(Duration::zero(), Duration(now - since))));
}

// Counts the pods that the list below the head line shows, so that both agree. A pod whose eviction is being retried
// still counts as waiting.
std::size_t count(const LiveState& state, PodOutcome outcome) {
  return static_cast<std::size_t>(std::count_if(state.held.begin(), state.held.end(),
                                                [&](const auto& entry) { return entry.second.outcome == outcome; }));
}

std::string head_line(const LiveState& state, const Terminal& terminal, std::size_t width, WallTime now) {
  const drain::Progress& progress = state.progress;
  std::string counts = fmt::format("{}/{} deleted", progress.vanished, progress.to_evict);
  if (const auto terminating = count(state, PodOutcome::terminating); terminating != 0)
    counts += fmt::format(", {} terminating", terminating);
  if (const auto waiting = count(state, PodOutcome::waiting); waiting != 0)
    counts += fmt::format(", {} waiting", waiting);
  const auto elsewhere = std::count_if(state.attached.begin(), state.attached.end(),
                                       [](const auto& entry) { return entry.second.elsewhere; });
  if (const auto here = std::ssize(state.attached) - elsewhere; here != 0)
    counts += fmt::format(", {} detaching", here);
  if (elsewhere != 0) counts += fmt::format(", {} reattaching", elsewhere);
  if (state.settling) counts += ", settling";
  counts += "  " + elapsed(state.started, now);
  const std::string name = "node/" + state.node;
  const std::size_t used = columns(name) + columns(counts) + 4 + (terminal.utf8 ? 0 : 2);
  if (used + narrowest_bar > width) return clipped(name + "  " + counts, width, terminal.utf8);
  const std::size_t bar_width = std::min(widest_bar, width - used);
  return name + "  " + bar(progress.vanished, progress.to_evict, bar_width, terminal.utf8) + "  " + counts;
}

// Returns why a pod waits: its message, or only its reason if a diagnosis of this pod is shown, too, which explains it.
std::string hold_of(const LivePod& pod, const LiveState& state) {
  const std::string subject = "pod " + pod.key;
  const bool told = std::any_of(state.diagnoses.begin(), state.diagnoses.end(),
                                [&](const drain::Diagnosis& diagnosis) { return diagnosis.subject == subject; });
  return pod.message.empty() || (told && !pod.reason.empty()) ? pod.reason
                                                              : without_subject(printable(pod.message), subject);
}

// Returns the line of the pod. Returns two lines if the first has too little space for the reason.
std::vector<std::string> pod_lines(const LivePod& pod, const LiveState& state, std::size_t key_width, std::size_t width,
                                   WallTime now) {
  const bool waiting = pod.outcome == PodOutcome::waiting;
  std::string line = fmt::format("  {} {} {:>6}", padded(waiting ? "waiting" : "terminating", 11),
                                 padded(pod.key, key_width), elapsed(pod.since, now));
  if (!waiting) return {line};
  const std::string hold = hold_of(pod, state);
  if (columns(line) + 2 + std::min(columns(hold), narrowest_hold) > width) return {line, "      " + hold};
  return {line + "  " + hold};
}

// Returns the pods, waiting ones first; within each group, the longest wait first.
std::vector<const LivePod*> in_order(const LiveState& state) {
  std::vector<const LivePod*> pods;
  pods.reserve(state.held.size());
  for (const auto& [uid, pod] : state.held) pods.push_back(&pod);
  std::sort(pods.begin(), pods.end(), [](const LivePod* a, const LivePod* b) {
    const auto rank = [](const LivePod* pod) {
      return std::tuple(pod->outcome != PodOutcome::waiting, pod->since, std::string_view(pod->key));
    };
    return rank(a) < rank(b);
  });
  return pods;
}

// Returns at most `room` lines about volumes. They are shown below the pods, because a drain waits for volumes last.
std::vector<std::string> volume_lines(const LiveState& state, std::size_t room, WallTime now) {
  std::vector<std::string> lines;
  std::size_t left = state.attached.size();
  for (const auto& [attachment, volume] : state.attached) {
    if (lines.size() == room) break;
    if (lines.size() + 1 == room && left > 1) {
      lines.push_back(fmt::format("  and {} more volumes", left));
      break;
    }
    lines.push_back(fmt::format("  {} {} {:>6}  {}", padded(volume.elsewhere ? "reattaching" : "detaching", 11),
                                volume.name, elapsed(volume.since, now), printable(volume.message)));
    --left;
  }
  return lines;
}

std::string colored(std::string line, const char* code, const Terminal& terminal) {
  return terminal.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, line) : line;
}

// Returns at most `room` lines about problems: the full messages if these leave at least half of `room` for the pods,
// otherwise one line per problem.
std::vector<std::string> note_lines(const LiveState& state, const Terminal& terminal, std::size_t width,
                                    std::size_t room) {
  std::vector<std::string> in_full;
  std::vector<std::string> in_short;
  const auto add = [&](const std::string& text, const char* color) {
    const auto fit = [&](const std::string& line) {
      return colored(clipped(line, width, terminal.utf8), color, terminal);
    };
    in_short.push_back(fit("  " + text));
    std::string indent = "  ";
    for (const std::string& line : wrapped(text, width > 6 ? width - 6 : width)) {
      in_full.push_back(fit(indent + line));
      indent = "      ";
    }
  };
  for (const std::string& trouble : {state.connection, state.throttle})
    if (!trouble.empty()) add(trouble, "31");
  for (const drain::Diagnosis& diagnosis : state.diagnoses)
    add(fmt::format("{} {}: {}", diagnosis.code, diagnosis.subject,
                    without_subject(printable(diagnosis.message), diagnosis.subject)),
        "33");
  std::vector<std::string>& notes = in_full.size() * 2 <= room ? in_full : in_short;
  notes.resize(std::min(notes.size(), room));
  return std::move(notes);
}

}  // namespace

void LiveState::apply(const drain::Event& event) {
  if (node.empty()) {
    node = event.node;
    started = event.at;
  }
  progress = event.progress;
  settling = event.type == EventType::settling;
  switch (event.type) {
    case EventType::eviction_sent: throttle.clear(); break;
    case EventType::parked:
    case EventType::terminating:
    case EventType::evicted: {
      if (event.pod == nullptr) break;
      const bool parked = event.type == EventType::parked;
      const PodOutcome outcome = parked ? PodOutcome::waiting : PodOutcome::terminating;
      LivePod& pod = held[event.pod->uid];
      if (pod.outcome != outcome) pod.since = event.at;
      pod = {event.pod->key(), outcome, event.pod->reason, event.pod->message, pod.since};
      break;
    }
    case EventType::vanished:
    case EventType::left:
      if (event.pod != nullptr) held.erase(event.pod->uid);
      break;
    case EventType::volume_waiting:
      if (event.volume == nullptr) break;
      if (event.volume->outcome != drain::VolumeOutcome::detaching)
        attached.erase(event.volume->attachment);
      else
        attached[event.volume->attachment] = {event.volume->claim.empty() ? event.volume->volume : event.volume->claim,
                                              event.volume->message, event.volume->unused_at.value_or(event.at), false};
      break;
    case EventType::volume_detached:
      if (event.volume != nullptr) attached.erase(event.volume->attachment);
      break;
    case EventType::volume_reattach:
      if (event.volume == nullptr) break;
      if (event.volume->reattach != drain::Reattach::waiting)
        attached.erase(event.volume->attachment);
      else
        attached[event.volume->attachment] = {event.volume->claim, event.volume->message,
                                              event.volume->detached_at.value_or(event.at), true};
      break;
    case EventType::diagnosis_raised:
    case EventType::diagnosis_withdrawn:
      if (event.diagnosis == nullptr) break;
      std::erase_if(diagnoses, [&](const drain::Diagnosis& known) {
        return known.code == event.diagnosis->code && known.subject == event.diagnosis->subject;
      });
      if (event.type == EventType::diagnosis_raised) diagnoses.push_back(*event.diagnosis);
      break;
    case EventType::disconnected: connection = "waiting for the API server: " + printable(event.message); break;
    case EventType::throttled: throttle = "evictions wait: " + printable(event.message); break;
    case EventType::reconnected: connection.clear(); break;
    default: break;
  }
}

namespace {

// Formats one node. Returns its head line and at most `room` lines below it.
std::vector<std::string> render_node(const LiveState& state, const Terminal& terminal, std::size_t room, WallTime now) {
  const std::size_t width = terminal.width - 1;  // some terminals wrap a line that fills the last column
  const auto fit = [&](const std::string& line) { return clipped(line, width, terminal.utf8); };
  std::vector<std::string> lines{head_line(state, terminal, width, now)};
  const std::vector<std::string> notes = note_lines(state, terminal, width, room);

  const std::vector<const LivePod*> pods = in_order(state);
  const std::size_t pod_room = room - notes.size();
  std::size_t key_width = 0;
  for (std::size_t i = 0; i < std::min(pods.size(), pod_room); ++i)
    key_width = std::max(key_width, columns(pods[i]->key));
  std::size_t used = 0;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const std::vector<std::string> next = pod_lines(*pods[i], state, key_width, width, now);
    const std::size_t line_of_the_rest = i + 1 < pods.size() ? 1 : 0;
    if (used + next.size() + line_of_the_rest > pod_room) {
      if (used < pod_room) lines.push_back(fit(fmt::format("  and {} more", pods.size() - i)));
      break;
    }
    for (const std::string& line : next) lines.push_back(fit(line));
    used += next.size();
  }
  const std::size_t volume_room = pod_room - used - (lines.size() > used + 1 ? 1 : 0);
  for (std::string& line : volume_lines(state, volume_room, now)) lines.push_back(fit(line));
  lines.insert(lines.end(), notes.begin(), notes.end());
  return lines;
}

}  // namespace

std::vector<std::string> render(const std::vector<LiveState>& nodes, const Terminal& terminal, WallTime now) {
  if (terminal.width < 2 || terminal.height < 2) return {};
  const std::size_t height = terminal.height - 1;  // without the line with the cursor
  const bool all_fit = nodes.size() <= height;
  const std::size_t shown = all_fit ? nodes.size() : height - 1;
  std::size_t room = all_fit ? height - shown : 0;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < shown; ++i) {
    std::vector<std::string> node = render_node(nodes[i], terminal, room / (shown - i), now);
    room -= node.size() - 1;
    std::ranges::move(node, std::back_inserter(lines));
  }
  if (!all_fit)
    lines.push_back(clipped(fmt::format("and {} more nodes", nodes.size() - shown), terminal.width - 1, terminal.utf8));
  return lines;
}

LiveView::LiveView(boost::asio::any_io_executor executor, Clock& clock, Console& console,
                   std::function<Terminal()> measure, std::size_t most_nodes)
    : clock_(clock),
      console_(console),
      measure_(std::move(measure)),
      changed_(std::move(executor)),
      most_nodes_(most_nodes) {}

void LiveView::on_event(const drain::Event& event) {
  if (event.type == drain::EventType::finished) return clear(event.node);
  auto node = std::ranges::find(nodes_, event.node, &LiveState::node);
  if (node == nodes_.end()) {
    if (nodes_.size() == most_nodes_)
      nodes_.erase(
          std::ranges::min_element(nodes_, {}, [this](const LiveState& one) { return last_event_[one.node]; }));
    node = nodes_.emplace(nodes_.end());
  }
  node->apply(event);
  last_event_[event.node] = ++events_;
  changed_.notify();
}

boost::asio::awaitable<void> LiveView::run() {
  for (;;) {
    co_await changed_.wait_until(clock_, clock_.now() + tick);
    draw();
    co_await clock_.sleep_until(clock_.now() + shortest_gap);
  }
}

void LiveView::clear(const std::string& node) {
  if (std::erase_if(nodes_, [&](const LiveState& one) { return one.node == node; }) > 0) draw();
}

void LiveView::draw() {
  console_.set_block(nodes_.empty() ? std::vector<std::string>{} : render(nodes_, measure_(), clock_.wall_now()));
}

}  // namespace haulout::cli
